"""What is said in a thread: conversation comments, reviews and review comments, with the operations on them."""

from __future__ import annotations

from typing import Literal

from rag_pipeline_tests.github_server.nouns import Comment, Review, ReviewComment, ReviewState, Thread
from rag_pipeline_tests.github_server.world import World, association, locked

HUNK = "@@ -10,4 +10,5 @@ def launch():\n     prepare()\n-    go()\n+    go(now=True)"


class Conversation(World):
    """The part of the forge that comments and reviews."""

    @locked
    def comment(
        self, thread: Thread, body: str | None = "A comment.", *, author: str | None = "ada", silently: bool = False
    ) -> Comment:
        """Comment in the conversation of an issue or pull request."""
        comment = Comment(
            id=self.new_id(), thread=thread, author=author, body=body, created_at=self.moment(),
            updated_at=self.moment(), association=association(thread.repository, author),
        )  # fmt: skip
        thread.comments.append(comment)
        self._touch(thread, silently)
        return comment

    @locked
    def edit_comment(self, comment: Comment, body: str | None, *, silently: bool = False) -> None:
        """Change a comment's text; its own `updated_at` always moves."""
        comment.body, comment.updated_at = body, self.moment()
        self._touch(comment.thread, silently)

    @locked
    def delete_comment(self, comment: Comment, *, silently: bool = False) -> None:
        """Delete a comment: its id answers 404."""
        comment.thread.comments.remove(comment)
        self._touch(comment.thread, silently)

    @locked
    def review(
        self, thread: Thread, state: ReviewState = "COMMENTED", *, body: str | None = "", author: str | None = "grace",
        commit_id: str | None = None, silently: bool = False,
    ) -> Review:  # fmt: skip
        """Review a pull request at its present head; a PENDING review shows nothing until it is submitted."""
        pull = thread.the_pull()
        review = Review(
            id=self.new_id(), thread=thread, author=author, body=body, state=state, submitted_at=self.moment(),
            commit_id=commit_id or pull.head_sha, association=association(thread.repository, author),
        )  # fmt: skip
        pull.reviews.append(review)
        self._touch(thread, silently or state == "PENDING")
        return review

    @locked
    def submit_review(self, review: Review, state: ReviewState = "COMMENTED", *, silently: bool = False) -> None:
        """Submit a pending review: its comments appear, with the ids and `created_at` of when they were drafted.

        Their `updated_at` is that of the submission (in the archive a review and its comments agree to the second).
        """
        review.state, review.submitted_at = state, self.moment()
        for comment in review.thread.the_pull().review_comments:
            if comment.review is review:
                comment.updated_at = self.moment()
        self._touch(review.thread, silently)

    @locked
    def edit_review(self, review: Review, body: str | None, *, silently: bool = False) -> None:
        """Change a review's text; nothing but its thread's `updated_at` tells that it changed."""
        review.body = body
        self._touch(review.thread, silently)

    @locked
    def dismiss_review(self, review: Review, *, silently: bool = False) -> None:
        """Dismiss a review: its text stays, its state is DISMISSED."""
        review.state = "DISMISSED"
        self._touch(review.thread, silently)

    @locked
    def review_comment(
        self, thread: Thread, body: str | None = "A remark.", *, path: str = "src/rocket.py", line: int | None = 12,
        start_line: int | None = None, side: Literal["LEFT", "RIGHT"] = "RIGHT", diff_hunk: str = HUNK,
        author: str | None = "grace", in_reply_to: ReviewComment | None = None, review: Review | None = None,
        silently: bool = False,
    ) -> ReviewComment:  # fmt: skip
        """Comment on a line of the diff; a reply takes its place from what it answers.

        Without a review GitHub makes one around the comment: COMMENTED, with an empty text.
        """
        if in_reply_to is not None:
            path, line, start_line = in_reply_to.path, in_reply_to.line, in_reply_to.start_line
            side, diff_hunk = in_reply_to.side, in_reply_to.diff_hunk
        comment = ReviewComment(
            id=self.new_id(), thread=thread, author=author, body=body, path=path, line=line, original_line=line,
            review=review or self.review(thread, author=author, silently=silently), start_line=start_line, side=side,
            diff_hunk=diff_hunk, in_reply_to=_root(in_reply_to), commit_id=thread.the_pull().head_sha,
            created_at=self.moment(), updated_at=self.moment(), association=association(thread.repository, author),
        )  # fmt: skip
        thread.the_pull().review_comments.append(comment)
        self._touch(thread, silently or comment.review.state == "PENDING")
        return comment

    @locked
    def edit_review_comment(self, comment: ReviewComment, body: str | None, *, silently: bool = False) -> None:
        """Change a review comment's text; its own `updated_at` always moves."""
        comment.body, comment.updated_at = body, self.moment()
        self._touch(comment.thread, silently)

    @locked
    def delete_review_comment(self, comment: ReviewComment, *, silently: bool = False) -> None:
        """Delete a review comment; replies to it stay, and still name it."""
        comment.thread.the_pull().review_comments.remove(comment)
        self._touch(comment.thread, silently)


def _root(comment: ReviewComment | None) -> int | None:
    # GitHub keeps threads flat: a reply to a reply names the first comment.
    if comment is None:
        return None
    return comment.in_reply_to or comment.id
