"""The ways an alert goes: a webhook, Slack, e-mail. Each delivers or raises; trying again is for the caller.

Dagster's own `make_email_on_run_failure_sensor` and dagster-slack's `make_slack_on_run_failure_sensor` know failed runs
only, want their secrets when the code is loaded, and forget an alert that could not be delivered.
"""

from __future__ import annotations

import smtplib
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from email.message import EmailMessage
from email.utils import formatdate, make_msgid
from typing import TYPE_CHECKING, Protocol

from rag_pipeline.alerting.messages import Alert, as_json, as_slack, as_text
from rag_pipeline.bounded_json import parse_json
from rag_pipeline.errors import ConfigError, DeliveryFailed, RagPipelineError
from rag_pipeline.model import Json
from rag_pipeline.settings.alerts import Alerts

if TYPE_CHECKING:
    import httpx


class Channel(Protocol):
    """A way to people."""

    @property
    def name(self) -> str:
        """What it is called in messages."""

    def send(self, alert: Alert) -> str:
        """Deliver it; what the other side said of it.

        Raises:
            DeliveryFailed: it was not taken. The message holds no secret.
            ConfigError: the variable that should hold a secret is not set.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class Webhook:
    """POSTs JSON to an address."""

    settings: Alerts
    environ: Mapping[str, str]
    name: str = "webhook"

    def send(self, alert: Alert) -> str:
        """See `Channel`."""
        address = _secret(self.environ, self.settings.webhook_url_env, "alerts.webhook_url_env")
        answer = _post(self.name, address, as_json(alert), timeout_s=self.settings.timeout_s)
        return f"HTTP {answer.status_code}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SlackWebhook:
    """An incoming webhook: https://api.slack.com/messaging/webhooks"""

    settings: Alerts
    environ: Mapping[str, str]
    name: str = "slack"

    def send(self, alert: Alert) -> str:
        """See `Channel`."""
        address = _secret(self.environ, self.settings.slack_webhook_url_env, "alerts.slack_webhook_url_env")
        answer = _post(self.name, address, as_slack(alert), timeout_s=self.settings.timeout_s)
        return f"HTTP {answer.status_code} {answer.text[:40]}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SlackBot:
    """`chat.postMessage` with a bot's token: https://api.slack.com/methods/chat.postMessage"""

    settings: Alerts
    environ: Mapping[str, str]
    name: str = "slack"

    def send(self, alert: Alert) -> str:
        """See `Channel`."""
        token = _secret(self.environ, self.settings.slack_token_env, "alerts.slack_token_env")
        answer = _post(
            self.name, f"{self.settings.slack_api_url}/chat.postMessage",
            {"channel": self.settings.slack_channel, **as_slack(alert)}, timeout_s=self.settings.timeout_s,
            headers={"Authorization": f"Bearer {token}"},
        )  # fmt: skip
        try:
            said = parse_json(answer.content)
        except ValueError as error:
            raise DeliveryFailed("slack: the answer is no JSON: is alerts.slack_api_url right?") from error
        # Slack says HTTP 200 to what it does not take, too.
        if not isinstance(said, dict) or said.get("ok") is not True:
            why = said.get("error", "no reason given") if isinstance(said, dict) else "no reason given"
            raise DeliveryFailed(
                f"slack: {str(why)[:80]}: check the token's scopes, and that the bot is in "
                f"{self.settings.slack_channel}"
            )
        return f"posted to {said.get('channel', self.settings.slack_channel)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Email:
    """SMTP, with STARTTLS unless it is configured otherwise; certificates are checked."""

    settings: Alerts
    environ: Mapping[str, str]
    name: str = "email"

    def send(self, alert: Alert) -> str:
        """See `Channel`."""
        s = self.settings
        password = _secret(self.environ, s.smtp_password_env, "alerts.smtp_password_env") if s.smtp_user else ""
        try:
            if s.smtp_security == "tls":
                tls = ssl.create_default_context()
                with smtplib.SMTP_SSL(s.smtp_host, s.smtp_port, timeout=s.timeout_s, context=tls) as server:
                    return self._give(server, alert, password)
            with smtplib.SMTP(s.smtp_host, s.smtp_port, timeout=s.timeout_s) as server:
                if s.smtp_security == "starttls":
                    server.starttls(context=ssl.create_default_context())
                return self._give(server, alert, password)
        except smtplib.SMTPAuthenticationError as error:
            raise DeliveryFailed(
                f"email: {s.smtp_host} refuses the login of {s.smtp_user}: check its password"
            ) from error
        except (smtplib.SMTPException, OSError) as error:
            # Only its kind and code: servers repeat what they were given.
            code = getattr(error, "smtp_code", "") or getattr(error, "strerror", "") or ""
            raise DeliveryFailed(
                f"email: {s.smtp_host}:{s.smtp_port} did not take it ({type(error).__name__} {code}): check "
                "alerts.smtp_host, smtp_port and smtp_security"
            ) from error

    def _give(self, server: smtplib.SMTP, alert: Alert, password: str) -> str:
        s = self.settings
        if s.smtp_user:
            server.login(s.smtp_user, password)
        message = EmailMessage()
        message["Subject"] = " ".join(f"[rag-pipeline] {alert.title}".split())[:200]
        message["From"], message["To"] = s.email_from, ", ".join(s.email_to)
        message["Date"], message["Message-ID"] = formatdate(), make_msgid(domain=s.email_from.rpartition("@")[2])
        message.set_content(as_text(alert))
        if refused := server.send_message(message):
            raise DeliveryFailed(f"email: {s.smtp_host} does not take mail for {', '.join(sorted(refused))}")
        return f"taken for {', '.join(s.email_to)}"


def channels_of(settings: Alerts, *, environ: Mapping[str, str]) -> list[Channel]:
    """Every channel that is configured; a secret that is missing shows when it is used."""
    channels: list[Channel] = []
    if settings.webhook_url_env:
        channels.append(Webhook(settings=settings, environ=environ))
    if settings.slack_webhook_url_env:
        channels.append(SlackWebhook(settings=settings, environ=environ))
    if settings.slack_token_env:
        channels.append(SlackBot(settings=settings, environ=environ))
    if settings.email_to:
        channels.append(Email(settings=settings, environ=environ))
    return channels


def try_all(channels: list[Channel], alert: Alert) -> list[tuple[str, bool, str]]:
    """Send an alert by every channel, whatever becomes of the others: name, whether it was taken, what was said."""
    outcomes = []
    for channel in channels:
        try:
            outcomes.append((channel.name, True, channel.send(alert)))
        except RagPipelineError as error:
            outcomes.append((channel.name, False, str(error)))
    return outcomes


def _post(
    name: str, address: str, body: Mapping[str, Json], *, timeout_s: float, headers: Mapping[str, str] | None = None
) -> httpx.Response:
    import httpx  # when there is something to say: loading it takes 0.1 s, and Dagster loads this module

    # Never the address in a message: that of a webhook is a secret.
    try:
        answer = httpx.post(address, json=body, timeout=timeout_s, headers=dict(headers or {}))
    except (httpx.HTTPError, httpx.InvalidURL, UnicodeError) as error:
        raise DeliveryFailed(f"{name}: no answer ({type(error).__name__}): check its address") from error
    if not answer.is_success:
        raise DeliveryFailed(f"{name}: refused with HTTP {answer.status_code}: check its address")
    return answer


def _secret(environ: Mapping[str, str], variable: str, key: str) -> str:
    value = environ.get(variable, "")
    if not value:
        raise ConfigError(f"{variable}, which {key} names, is not set: put the secret into that environment variable")
    return value
