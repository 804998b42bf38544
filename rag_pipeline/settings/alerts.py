"""Settings of alerts: who is told, by which channel, of what. Secrets are named, never written."""

from __future__ import annotations

import re
from typing import Literal

from pydantic import Field, field_validator, model_validator

from rag_pipeline.settings.sections import Section, variable_name, web_address

_ADDRESS = re.compile(r"^[^@\s<>,;]+@[^@\s<>,;]+$")

Occasion = Literal["run_failure", "check_failure", "check_warning", "quarantine"]


class Alerts(Section):
    """Nobody is told anything until a channel is configured."""

    occasions: tuple[Occasion, ...] = ("run_failure", "check_failure", "quarantine")
    """What is told: failed runs, failed checks, checks that only warn, quarantined items that are given up."""
    webhook_url_env: str = ""
    """Environment variable with the address that gets each alert as JSON."""
    slack_webhook_url_env: str = ""
    """Environment variable with the address of an incoming webhook of Slack."""
    slack_token_env: str = ""
    """Instead of it: environment variable with a bot's token (scope `chat:write`); needs `slack_channel`."""
    slack_channel: str = ""
    """Such as `#data-alerts`; the bot must be in it."""
    slack_api_url: str = "https://slack.com/api"
    email_to: tuple[str, ...] = ()
    email_from: str = ""
    smtp_host: str = ""
    smtp_port: int = Field(default=587, ge=1, le=65535)
    smtp_security: Literal["starttls", "tls", "none"] = "starttls"
    smtp_user: str = ""
    """Empty: the server asks for no login."""
    smtp_password_env: str = ""
    """Environment variable with the password of `smtp_user`."""
    ui_url: str = "http://localhost:3000"
    """Where the Dagster UI is, for links."""
    max_per_hour: int = Field(default=20, ge=1)
    """Messages by each channel; what is more waits, and comes as one."""
    timeout_s: float = Field(default=10.0, gt=0)
    """Patience with one delivery."""

    @field_validator("webhook_url_env", "slack_webhook_url_env", "slack_token_env", "smtp_password_env")
    @classmethod
    def _secret_is_named(cls, name: str) -> str:
        return variable_name(name)

    @field_validator("ui_url", "slack_api_url")
    @classmethod
    def _is_an_address(cls, url: str) -> str:
        return web_address(url)

    @field_validator("email_to")
    @classmethod
    def _are_addresses(cls, addresses: tuple[str, ...]) -> tuple[str, ...]:
        for address in addresses:
            if not _ADDRESS.match(address):
                raise ValueError(f"{address!r} is no e-mail address")
        return addresses

    @model_validator(mode="after")
    def _channels_are_whole(self) -> Alerts:
        if self.slack_token_env and not self.slack_channel:
            raise ValueError("slack_token_env needs slack_channel: name the channel to post to")
        if self.slack_token_env and self.slack_webhook_url_env:
            raise ValueError("slack_token_env and slack_webhook_url_env are two ways to the same: set one of them")
        if self.email_to and not (self.email_from and self.smtp_host):
            raise ValueError("email_to needs email_from and smtp_host")
        if self.smtp_user and not self.smtp_password_env:
            raise ValueError("smtp_user needs smtp_password_env: the variable that holds its password")
        return self

    @property
    def configured(self) -> bool:
        """Whether there is anybody to tell."""
        return bool(self.webhook_url_env or self.slack_webhook_url_env or self.slack_token_env or self.email_to)
