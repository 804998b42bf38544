"""Secrets of every kind, made at run time from their parts: nothing in this file looks like one to a scanner."""

from __future__ import annotations

import base64
import json
import random
import string
from collections.abc import Callable

LETTERS = string.ascii_letters
ALNUM = LETTERS + string.digits
LOWER = string.ascii_lowercase + string.digits
UPPER = string.ascii_uppercase + string.digits
BASE58 = "".join(c for c in string.digits + string.ascii_letters if c not in "0OIl")
URLSAFE = ALNUM + "_-"
BASE64 = ALNUM + "+/"
HEX = "0123456789abcdef"
PASSWORD = ALNUM + "!@#%^*-_+"

Make = Callable[[random.Random], str]


def run(alphabet: str, length: int) -> Make:
    """A random run of characters that holds a letter and a digit where its alphabet does."""
    mixed = any(c.isalpha() for c in alphabet) and any(c.isdigit() for c in alphabet)

    def make(rng: random.Random) -> str:
        while True:
            value = "".join(rng.choice(alphabet) for _ in range(length))
            if length < 6 or not mixed or (any(c.isalpha() for c in value) and any(c.isdigit() for c in value)):
                return value

    return make


def glued(*parts: str | Make) -> Make:
    """Parts after each other."""
    return lambda rng: "".join(part if isinstance(part, str) else part(rng) for part in parts)


def uuid(rng: random.Random) -> str:
    """A UUID."""
    return "-".join(run(HEX, n)(rng) for n in (8, 4, 4, 4, 12))


def word(rng: random.Random) -> str:
    """A password as people are told to choose one: no blank, no quote."""
    return rng.choice(LETTERS) + run(PASSWORD, rng.randint(9, 20))(rng) + rng.choice(ALNUM)


def jwt(rng: random.Random) -> str:
    """A signed token."""
    parts = (
        {"alg": "HS256", "typ": "JWT"},
        {"sub": str(rng.randint(10**8, 10**9)), "iat": rng.randint(10**9, 2 * 10**9)},
    )
    encoded = [base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts]
    return ".".join([*encoded, run(URLSAFE, 43)(rng)])


def basic(rng: random.Random) -> str:
    """Base64 of `user:password`."""
    return base64.b64encode(f"deploy:{word(rng)}".encode()).decode()


TOKENS: dict[str, Make] = {
    "aws-access-key-id": glued("AK", "IA", run(string.ascii_uppercase + "234567", 16)),
    "aws-sts-key-id": glued("AS", "IA", run(string.ascii_uppercase + "234567", 16)),
    "aws-session-token": glued("IQoJb3", "JpZ2lu", run(BASE64, 200)),
    "gcp-api-key": glued("AI", "za", run(URLSAFE, 35)),
    "google-oauth-secret": glued("GOC", "SPX-", run(URLSAFE, 28)),
    "google-access-token": glued("ya", "29.", run(URLSAFE, 120)),
    "azure-client-secret": glued(run(ALNUM, 3), "8Q", "~", run(ALNUM + "_~.-", 33), "x"),
    "azure-devops": glued(run(ALNUM, 76), "AZ", "DO", run(ALNUM, 4)),
    "github-classic": glued("gh", "p_", run(ALNUM, 36)),
    "github-oauth": glued("gh", "o_", run(ALNUM, 36)),
    "github-user": glued("gh", "u_", run(ALNUM, 36)),
    "github-server": glued("gh", "s_", run(ALNUM, 36)),
    "github-refresh": glued("gh", "r_", run(ALNUM, 76)),
    "github-fine-grained": glued("github", "_pat_", run(ALNUM, 22), "_", run(ALNUM, 59)),
    "gitlab-personal": glued("gl", "pat-", run(URLSAFE, 19), "x"),
    "gitlab-deploy": glued("gl", "dt-", run(URLSAFE, 19), "x"),
    "gitlab-runner": glued("gl", "rt-", run(URLSAFE, 19), "x"),
    "gitlab-trigger": glued("gl", "ptt-", run(HEX, 40)),
    "bitbucket": glued("AT", "BB", run(ALNUM, 24), run(UPPER, 8)),
    "slack-bot": glued("xo", "xb-", run(string.digits, 12), "-", run(string.digits, 12), "-", run(ALNUM, 24)),
    "slack-user": glued("xo", "xp-", run(string.digits, 12), "-", run(string.digits, 12), "-", run(HEX, 32)),
    "slack-app": glued("xa", "pp-1-A", run(UPPER, 10), "-", run(string.digits, 13), "-", run(HEX, 64)),
    "slack-webhook": glued(
        "https://hooks.sl", "ack.com/services/T", run(UPPER, 10), "/B", run(UPPER, 10), "/", run(ALNUM, 24)
    ),
    "discord-webhook": glued(
        "https://disc", "ord.com/api/webhooks/", run(string.digits, 18), "/", run(URLSAFE, 67), "x"
    ),
    "telegram-bot": glued(run("123456789", 10), ":A", "A", run(URLSAFE, 32), "x"),
    "stripe-secret": glued("sk", "_live_", run(ALNUM, 24)),
    "stripe-restricted": glued("rk", "_live_", run(ALNUM, 24)),
    "stripe-webhook": glued("wh", "sec_", run(ALNUM, 32)),
    "twilio-key": glued("S", "K", run(HEX, 32)),
    "sendgrid": glued("S", "G.", run(URLSAFE, 22), ".", run(URLSAFE, 42), "x"),
    "mailgun": glued("ke", "y-", run(HEX, 32)),
    "mailchimp": glued(run(HEX, 32), "-u", "s14"),
    "npm": glued("np", "m_", run(ALNUM, 36)),
    "pypi": glued("py", "pi-", "AgEIcHlwaS5vcmc", run(URLSAFE, 100), "x"),
    "rubygems": glued("ruby", "gems_", run(HEX, 48)),
    "crates": glued("ci", "o", run(ALNUM, 32)),
    "docker-hub": glued("dckr", "_pat_", run(URLSAFE, 26), "x"),
    "terraform": glued(run(ALNUM, 14), ".atlas", "v1.", run(URLSAFE, 66), "x"),
    "vault-service": glued("hv", "s.", run(URLSAFE, 90), "x"),
    "vault-legacy": glued("s", ".", run(ALNUM, 24)),
    "databricks": glued("da", "pi", run(HEX, 32)),
    "openai-project": glued("sk", "-proj-", run(URLSAFE, 80), "x"),
    "openai-legacy": glued("sk", "-", run(ALNUM, 20), "T3Blbk", "FJ", run(ALNUM, 20)),
    "anthropic": glued("sk", "-ant-api03-", run(URLSAFE, 92), "x"),
    "hugging-face": glued("h", "f_", run(LETTERS + string.digits, 34)),
    "replicate": glued("r", "8_", run(ALNUM, 37)),
    "groq": glued("gs", "k_", run(ALNUM, 52)),
    "shopify": glued("shp", "at_", run(HEX, 32)),
    "square": glued("sq0", "csp-", run(URLSAFE, 42), "x"),
    "plaid": glued("access", "-production-", uuid),
    "heroku": glued("HR", "KU-", run(URLSAFE, 60), "x"),
    "digitalocean": glued("do", "p_v1_", run(HEX, 64)),
    "cloudflare-origin": glued("v1", ".0-", run(HEX, 24), "-", run(HEX, 146)),
    "new-relic": glued("NR", "AK-", run(UPPER, 27)),
    "sentry-token": glued("sntr", "ys_", run(BASE64, 140)),
    "grafana-service": glued("gl", "sa_", run(ALNUM, 32), "_", run(HEX, 8)),
    "grafana-cloud": glued("gl", "c_", run(ALNUM, 120)),
    "mapbox": glued("sk", ".eyJ1Ijoi", run(ALNUM, 60), ".", run(URLSAFE, 21), "x"),
    "launchdarkly": glued("sd", "k-", uuid),
    "linear": glued("lin", "_api_", run(ALNUM, 40)),
    "notion-old": glued("sec", "ret_", run(ALNUM, 43)),
    "notion": glued("nt", "n_", run(ALNUM, 46)),
    "airtable": glued("pa", "t", run(ALNUM, 14), ".", run(HEX, 64)),
    "atlassian": glued("AT", "ATT3", run(URLSAFE, 180), "x"),
    "hubspot": glued("pat", "-na1-", uuid),
    "figma": glued("fi", "gd_", run(URLSAFE, 39), "x"),
    "dropbox": glued("s", "l.", run(URLSAFE, 130), "x"),
    "intercom": glued("dG", "9r", run(ALNUM, 56)),
    "age": glued("AGE-SEC", "RET-KEY-1", run(UPPER, 58)),
    "doppler": glued("dp", ".pt.", run(ALNUM, 43)),
    "pulumi": glued("pu", "l-", run(HEX, 40)),
    "postman": glued("PM", "AK-", run(HEX, 24), "-", run(HEX, 34)),
    "resend": glued("r", "e_", run(BASE58, 8), "_", run(BASE58, 24)),
    "miro": glued("eyJt", "aXJv", run(ALNUM, 30), "_", run(URLSAFE, 30), "x"),
    "ionic": glued("io", "n_", run(ALNUM, 42)),
    "tailscale": glued("ts", "key-auth-", run(ALNUM, 12), "-", run(ALNUM, 32)),
    "jwt": jwt,
    "bcrypt": glued("$2", "y$10$", run(ALNUM + "./", 53)),
    "sha512-crypt": glued("$", "6$", run(ALNUM, 16), "$", run(ALNUM + "./", 86)),
    "apr1": glued("$ap", "r1$", run(ALNUM, 8), "$", run(ALNUM + "./", 22)),
}
"""Formats that say by themselves what they are: they are found wherever they stand."""

NAMED: dict[str, tuple[str, Make]] = {
    "aws-secret": ("aws_secret_access_key", run(BASE64, 40)),
    "aws-session": ("AWS_SESSION_TOKEN", run(BASE64, 220)),
    "azure-storage": ("AccountKey", glued(run(BASE64, 86), "==")),
    "twilio-auth": ("TWILIO_AUTH_TOKEN", run(HEX, 32)),
    "postmark": ("POSTMARK_SERVER_TOKEN", uuid),
    "heroku-uuid": ("HEROKU_API_KEY", uuid),
    "snowflake": ("SNOWFLAKE_PASSWORD", word),
    "cohere": ("COHERE_API_KEY", run(ALNUM, 40)),
    "mistral": ("MISTRAL_API_KEY", run(ALNUM, 32)),
    "paypal": ("PAYPAL_CLIENT_SECRET", run(URLSAFE, 80)),
    "linode": ("LINODE_TOKEN", run(HEX, 64)),
    "cloudflare": ("CLOUDFLARE_API_TOKEN", run(URLSAFE, 40)),
    "cloudflare-global": ("CLOUDFLARE_API_KEY", run(HEX, 37)),
    "fastly": ("FASTLY_API_TOKEN", run(URLSAFE, 32)),
    "datadog": ("DATADOG_API_KEY", run(HEX, 32)),
    "datadog-app": ("DD_APP_KEY", run(HEX, 40)),
    "pagerduty": ("PAGERDUTY_API_KEY", run(ALNUM, 20)),
    "algolia": ("ALGOLIA_ADMIN_KEY", run(HEX, 32)),
    "okta": ("OKTA_API_TOKEN", glued("00", run(URLSAFE, 40))),
    "auth0": ("AUTH0_CLIENT_SECRET", run(URLSAFE, 64)),
    "asana": ("ASANA_ACCESS_TOKEN", glued("1/", run("123456789", 16), ":", run(HEX, 32))),
    "zendesk": ("ZENDESK_API_TOKEN", run(ALNUM, 40)),
    "jira": ("JIRA_API_TOKEN", run(ALNUM, 24)),
    "discord-bot": ("DISCORD_BOT_TOKEN", glued("M", run(ALNUM, 23), ".", run(URLSAFE, 6), ".", run(URLSAFE, 37), "x")),
    "django": ("SECRET_KEY", run(PASSWORD, 50)),
    "rails": ("SECRET_KEY_BASE", run(HEX, 128)),
    "ovh-key": ("OVH_APPLICATION_KEY", run(ALNUM, 16)),
    "ovh-secret": ("OVH_APPLICATION_SECRET", run(ALNUM, 32)),
    "ovh-consumer": ("OVH_CONSUMER_KEY", run(ALNUM, 32)),
    "password": ("password", word),
    "db-password": ("DB_PASSWORD", word),
    "passphrase": ("passphrase", word),
    "api-key": ("api_key", run(ALNUM, 24)),
    "api-key-dashed": ("x-api-key", run(ALNUM, 32)),
    "client-secret": ("clientSecret", run(ALNUM, 32)),
    "auth-token": ("authToken", run(ALNUM, 40)),
    "webhook-secret": ("webhook_secret", run(HEX, 40)),
    "encryption-key": ("ENCRYPTION_KEY", glued(run(BASE64, 43), "=")),
    "private-token": ("PRIVATE-TOKEN", run(URLSAFE, 20)),
    "kube-token": ("token", run(ALNUM, 60)),
    "kube-key": ("client-key-data", glued("LS0tLS1C", run(BASE64, 200), "==")),
    "access-token": ("access_token", run(URLSAFE, 50)),
    "refresh-token": ("refresh_token", run(URLSAFE, 50)),
}
"""Values that only their name gives away."""

PLACED: dict[str, tuple[str, Make]] = {
    "postgres-url": ("postgres://app:{}@db.internal:5432/app", run(ALNUM, 16)),
    "mysql-url": ("mysql://root:{}@10.0.0.3/shop", run(ALNUM, 14)),
    "mongodb-url": ("mongodb+srv://svc:{}@cluster0.ab1cd.mongodb.net/?retryWrites=true", run(ALNUM, 16)),
    "redis-url": ("redis://:{}@cache:6379/0", run(ALNUM, 24)),
    "amqp-url": ("amqp://worker:{}@mq:5672/%2f", run(ALNUM, 18)),
    "encoded-url-password": ("postgresql://u:{}%40x1@h/db", run(ALNUM, 12)),
    "https-url": ("git clone https://ci:{}@git.corp.io/team/app.git", run(ALNUM, 20)),
    "https-token-url": ("https://{}@git.corp.io/team/app.git", run(ALNUM, 32)),
    "nested-url": ("https://x.io/login?next=https%3A%2F%2Fbob%3A{}%40h.io%2F", run(ALNUM, 12)),
    "pip-index": ("--index-url https://build:{}@pypi.corp.io/simple", run(ALNUM, 20)),
    "sentry-dsn": ("https://{}@o4504.ingest.sentry.io/4505", run(HEX, 32)),
    "query-key": ("GET https://api.corp.io/v1/items?api_key={}&page=2", run(ALNUM, 32)),
    "sas": ("https://a.blob.core.windows.net/c?sv=2022-11-02&sp=r&sig={}%3D", run(ALNUM, 42)),
    "jdbc": ("jdbc:sqlserver://h:1433;databaseName=d;user=sa;password={};encrypt=true", word),
    "odbc": ("Driver={{ODBC}};Server=tcp:h,1433;Uid=sa;Pwd={};Encrypt=yes;", word),
    "ado": ("Server=db;Database=app;User Id=sa;Password={};", word),
    "account-key": (
        "DefaultEndpointsProtocol=https;AccountName=acc;AccountKey={};EndpointSuffix=core",
        glued(run(BASE64, 86), "=="),
    ),
    "service-bus": ("Endpoint=sb://x/;SharedAccessKeyName=Root;SharedAccessKey={}", glued(run(BASE64, 43), "=")),
    "curl-user": ("curl -u deploy:{} https://api.corp.io", word),
    "curl-user-quoted": ("curl -sS --user 'deploy:{}' https://api.corp.io", word),
    "mysql-option": ("mysqldump -h db -u root -p{} shop > dump.sql", run(ALNUM, 14)),
    "docker-login": ("docker login -u ci -p {} registry.corp.io", run(ALNUM, 24)),
    "sshpass": ("sshpass -p '{}' ssh root@10.0.0.4", word),
    "password-option": ("tool login --password {} --verbose", word),
    "token-option": ("tool login --token={}", run(ALNUM, 32)),
    "bearer": ("Authorization: Bearer {}", run(ALNUM, 40)),
    "bearer-curl": ('curl -H "Authorization: Bearer {}" https://x.io', run(URLSAFE, 43)),
    "basic": ("Authorization: Basic {}", basic),
    "token-header": ("Authorization: token {}", run(HEX, 40)),
    "header": ("X-Auth-Token: {}", run(HEX, 32)),
    "netrc": ("machine api.corp.io login bob password {}", word),
    "pgpass": ("db.corp.io:5432:app:app:{}", run(ALNUM, 14)),
    "htpasswd": ("bob:{}", glued("$ap", "r1$", run(ALNUM, 8), "$", run(ALNUM + "./", 22))),
    "shadow": ("root:{}:19000:0:99999:7:::", glued("$", "6$", run(ALNUM, 16), "$", run(ALNUM + "./", 86))),
    "yescrypt": ("root:{}:19000:0:99999:7:::", glued("$", "y$j9T$", run(ALNUM, 22), "$", run(ALNUM + "./", 43))),
    "docker-auth": ('{{"auths": {{"ghcr.io": {{"auth": "{}"}}}}}}', basic),
    "npmrc": ("//npm.corp.io/:_authToken={}", uuid),
    "npmrc-auth": ("//npm.corp.io/:_auth={}", basic),
    "sql": ("CREATE USER app IDENTIFIED BY '{}';", word),
    "xml": ("<password>{}</password>", run(ALNUM, 16)),
    "xml-attribute": ('<add key="DbPassword" value="{}" />', run(ALNUM, 16)),
    "env-list": ("- name: API_TOKEN\n  value: {}", run(ALNUM, 32)),
    "environ": ('os.environ["STRIPE_API_KEY"] = "{}"', run(ALNUM, 32)),
    "setter": ('config.set("api_key", "{}")', run(ALNUM, 32)),
    "folded": ("api_token: >-\n  {}", run(ALNUM, 40)),
    "bold": ("**Password:** {}", word),
    "bold-code": ("- **API key**: `{}`", run(ALNUM, 32)),
    "prose-is": ("The admin password is `{}` for now.", word),
    "comment": ("# password: {}", word),
    "escaped-json": ('{{"body": "{{\\"password\\": \\"{}\\"}}"}}', run(ALNUM, 16)),
}
"""Values that only their place gives away; `{}` stands for the value."""
