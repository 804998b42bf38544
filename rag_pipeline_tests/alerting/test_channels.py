"""Alerts arrive whole by every channel, say why where they do not, and never show a secret."""

from __future__ import annotations

import json

import pytest

from rag_pipeline.alerting.channels import channels_of, try_all
from rag_pipeline.alerting.messages import Alert, as_slack, as_text, digest
from rag_pipeline.errors import ConfigError, DeliveryFailed
from rag_pipeline.settings.alerts import Alerts

ALERT = Alert(
    kind="run_failure", title="refresh failed in chunks", facts=[("job", "refresh"), ("run", "r1")],
    reason="no <such> branch & more", advice="Name another.", link="http://ui/runs/r1",
)  # fmt: skip


def test_a_webhook_gets_everything_as_json(posts):
    (channel,) = channels_of(Alerts(webhook_url_env="HOOK"), environ={"HOOK": f"{posts.url}/secret"})
    assert channel.send(ALERT) == "HTTP 200"
    (body,) = posts.bodies
    assert (body["kind"], body["link"], body["facts"]) == ("run_failure", ALERT.link, {"job": "refresh", "run": "r1"})
    assert body["text"] == as_text(ALERT)


def test_slack_gets_blocks_by_a_webhook_or_by_a_bot(posts):
    hook = Alerts(slack_webhook_url_env="HOOK")
    (channel,) = channels_of(hook, environ={"HOOK": f"{posts.url}/services/T/B/x"})
    channel.send(ALERT)
    bot = Alerts(slack_token_env="TOKEN", slack_channel="#data", slack_api_url=posts.url)
    (channel,) = channels_of(bot, environ={"TOKEN": "xoxb-1"})
    posts.answer = json.dumps({"ok": True, "channel": "C1"}).encode()
    assert channel.send(ALERT) == "posted to C1"
    (_, _, first), (path, headers, second) = posts.taken
    assert (path, headers["authorization"], second.pop("channel")) == ("/chat.postMessage", "Bearer xoxb-1", "#data")
    assert first == second
    assert "no &lt;such&gt; branch &amp; more" in first["blocks"][1]["text"]["text"]
    assert "<http://ui/runs/r1|Open in Dagster>" in first["blocks"][1]["text"]["text"]


def test_slack_s_no_is_a_no_although_it_says_200(posts):
    posts.answer = b'{"ok": false, "error": "not_in_channel"}'
    bot = Alerts(slack_token_env="TOKEN", slack_channel="#data", slack_api_url=posts.url)
    (channel,) = channels_of(bot, environ={"TOKEN": "xoxb-1"})
    with pytest.raises(DeliveryFailed, match=r"not_in_channel: .* the bot is in #data"):
        channel.send(ALERT)


def mail(port: int, **more: object) -> Alerts:
    return Alerts.model_validate({
        "email_to": ["ada@example.org", "bob@example.org"], "email_from": "rag@example.org",
        "smtp_host": "127.0.0.1", "smtp_port": port, "smtp_security": "none", **more,
    })  # fmt: skip


def test_a_mail_goes_to_everybody(mails):
    (channel,) = channels_of(mail(mails.port), environ={})
    channel.send(ALERT)
    ((sender, recipients, message),) = mails.taken
    assert (sender, recipients) == ("rag@example.org", ["ada@example.org", "bob@example.org"])
    assert message["Subject"] == "[rag-pipeline] refresh failed in chunks"
    assert message["Date"] and message["Message-ID"].endswith("@example.org>")
    assert "no <such> branch & more" in message.get_payload(decode=True).decode()


def test_a_title_cannot_add_headers_to_a_mail(mails):
    (channel,) = channels_of(mail(mails.port), environ={})
    channel.send(Alert(kind="test", title="one\r\nBcc: eve@example.org"))
    ((_, recipients, message),) = mails.taken
    assert message["Bcc"] is None and "eve@example.org" not in recipients


def test_one_channel_that_fails_does_not_hide_the_others(posts, mails):
    mails.refuse = True
    alerts = mail(mails.port, webhook_url_env="HOOK", slack_webhook_url_env="NOT_SET")
    outcomes = try_all(channels_of(alerts, environ={"HOOK": posts.url}), ALERT)
    assert [(name, taken) for name, taken, _ in outcomes] == [("webhook", True), ("slack", False), ("email", False)]
    assert "NOT_SET, which alerts.slack_webhook_url_env names, is not set" in outcomes[1][2]
    assert "451" in outcomes[2][2]


@pytest.mark.parametrize("status", [302, 403, 500])
def test_a_refusal_is_an_error_that_does_not_name_the_address(posts, status):
    posts.status = status
    (channel,) = channels_of(Alerts(webhook_url_env="HOOK"), environ={"HOOK": f"{posts.url}/hunter2"})
    with pytest.raises(DeliveryFailed, match=f"HTTP {status}") as raised:
        channel.send(ALERT)
    assert "hunter2" not in str(raised.value)


def test_nobody_there_is_an_error_that_does_not_name_the_address():
    for address in ("http://127.0.0.1:9/hunter2", "hunter2", "http://hunter2\x00/"):
        (channel,) = channels_of(Alerts(webhook_url_env="HOOK"), environ={"HOOK": address})
        with pytest.raises(DeliveryFailed, match="no answer") as raised:
            channel.send(ALERT)
        assert "hunter2" not in str(raised.value)


def test_a_server_without_starttls_gets_no_mail(mails):
    (channel,) = channels_of(mail(mails.port, smtp_security="starttls"), environ={})
    with pytest.raises(DeliveryFailed, match="smtp_security"):
        channel.send(ALERT)
    assert mails.taken == []


def test_a_missing_secret_is_named():
    (channel,) = channels_of(Alerts(webhook_url_env="HOOK"), environ={})
    with pytest.raises(ConfigError, match="HOOK"):
        channel.send(ALERT)


def test_a_digest_counts_what_it_does_not_list():
    made = digest([ALERT] * 30, left_out=5)
    assert (made.title, len(made.facts), made.reason) == ("35 alerts", 20, "and 15 more")


def test_the_longest_alert_fits_into_a_slack_message_and_keeps_its_link():
    facts = [("check " + "x" * 50, "y" * 200)] * 40
    message = as_slack(Alert(kind="digest", title="t" * 400, facts=facts, reason="z" * 9_000, link="http://ui/runs/1"))
    header, section = message["blocks"]
    assert len(header["text"]["text"]) <= 150
    assert len(section["text"]["text"]) <= 3_000
    assert section["text"]["text"].endswith("<http://ui/runs/1|Open in Dagster>")


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"slack_token_env": "T"}, "needs slack_channel"),
        ({"slack_token_env": "T", "slack_channel": "c", "slack_webhook_url_env": "U"}, "two ways"),
        ({"email_to": ["a@b"]}, "needs email_from and smtp_host"),
        ({"email_to": ["nobody"], "email_from": "a@b", "smtp_host": "h"}, "no e-mail address"),
        ({"smtp_user": "u"}, "smtp_password_env"),
        ({"webhook_url_env": "https://hooks/secret"}, "environment variable"),
    ],
)
def test_settings_that_cannot_work_are_refused(wrong, said):
    with pytest.raises(ValueError, match=said):
        Alerts.model_validate(wrong)
