"""How secrets are written in code, configuration and documentation; and what is written alike and is none."""

from __future__ import annotations

import pytest

from rag_pipeline.documents.redaction import redact

KEY = "9yKq2LmZx4abc88dkfj3Qw7PzT"
WORD = "Gr33nTea9!x"
EASY = "Winter2023"
"""A password of letters and digits: without quotes, a program would have it for a name."""
DJANGO = (
    "g)g7cqsp0^f9&z$)x^)nlo@rzs#c_u###!#1$9be=&ng00mto+",
    "django-insecure-awtf+x3&((^i+mpm04mk-6zb&plyxxvxx%58g@$l2^4vru065s",
)

CONFIGURATION = (
    f"    password: {EASY}", f"      POSTGRES_PASSWORD: {EASY}",
    f"ENV DB_PASSWORD={EASY}", f"export DB_PASSWORD={EASY}",
    f"password={EASY}", f"<password>{EASY}</password>", f"ansible_password={EASY}", f"ENV MYSQL_ROOT_PASSWORD {EASY}",
    f"setx DB_PASSWORD {EASY}", f"requirepass {EASY}x",
)  # fmt: skip
ANYWHERE = (
    f'{{"name": "API_KEY", "value": "{KEY}"}}', f'{{"name": "API_KEY",\n  "value": "{KEY}"}}',
    f"{{ name: 'API_TOKEN', value: '{KEY}' }}", f'{{"Name": "API_TOKEN", "Value": "{KEY}"}}',
    f'{{"ParameterKey": "DBPassword", "ParameterValue": "{WORD}"}}', f'config("SECRET_KEY", default="{KEY}")',
    *(f"SECRET_KEY = '{key}'" for key in DJANGO),
    f"CREATE USER app WITH PASSWORD '{WORD}';", f"ALTER USER postgres PASSWORD '{WORD}';",
    f'#define WIFI_PASSWORD "{WORD}"', f'#define API_KEY "{KEY}"', f'storePassword "{WORD}"', f':password "{WORD}"',
    f"aws configure set aws_secret_access_key {KEY}/K7MDENGbPxRf", f"keytool -genkey -storepass {WORD}",
    f'dataSource.setPassword("{WORD}");', f'.password("{WORD}")', f'client.setApiKey("{KEY}")', f'.apiKey("{KEY}")',
    f"SET PASSWORD FOR 'bob'@'%' = PASSWORD('{WORD}');",
    f'password=SecretStr("{WORD}")', f'var jwtKey = []byte("{KEY}")', f'password: String::from("{WORD}"),',
    f'Password: aws.String("{WORD}"),', f'apiKey = Buffer.from("{KEY}", "hex")',
    f'password: str = Field(default="{WORD}")', f'$password = ConvertTo-SecureString "{WORD}" -AsPlainText -Force',
    f'var password string = "{WORD}"', f'const apiKey string = "{KEY}"', f'char password[32] = "{WORD}";',
    f'password: string | undefined = "{WORD}"',
    f'requests.get(url, auth=("bob", "{WORD}"))', f"HTTPBasicAuth('bob', '{WORD}')",
    f'req.SetBasicAuth("bob", "{WORD}")',
    f'new NetworkCredential("bob", "{WORD}")',
    "https://api.telegram.org/bot3128768571:AAuQBMecssFVln6ytn1pWWQSqNsk0AmWNdK/sendMessage",
    "bob:{SHA}sVKh/TpbZRpH3j9/r5iqljrsdOc=", '"password": "{noop}' + WORD + '"', '"password": "$Zk9q!aTr7"',
    'JWT_SECRET="W1nter!sComing#22"',
)  # fmt: skip


@pytest.mark.parametrize("line", CONFIGURATION)
def test_a_password_without_quotes_goes_where_bare_words_are_values(line: str) -> None:
    assert EASY not in redact(f"# settings\n{line}\n").text


@pytest.mark.parametrize("code", [False, True])
@pytest.mark.parametrize("line", ANYWHERE)
def test_a_secret_goes_however_it_is_written(line: str, code: bool) -> None:
    left = redact(f"\n{line}\n", code=code).text
    assert "[REDACTED:" in left
    held = (KEY, WORD, *DJANGO, "AAuQBMecssFVln6", "sVKh/Tpb", "Zk9q!aTr7", "W1nter!sComing")
    assert not any(value in left for value in held), left


@pytest.mark.parametrize("code", [False, True])
def test_a_password_may_hold_what_ends_it_in_an_address(code: bool) -> None:
    left = redact("postgres://app:P@ssw0rd99@db.acme.io/app mongodb://admin:Zk9q@aTr7x@mongo:27017/x", code=code).text
    assert left == (
        "postgres://app:[REDACTED:password-in-url]@db.acme.io/app "
        "mongodb://admin:[REDACTED:password-in-url]@mongo:27017/x"
    )


@pytest.mark.parametrize(
    "head", ["| User | Password |\n|---|---|", "User | DB password\n:-- | --:", "|a|**Token**|\n|-|-|  "]
)
def test_the_head_of_a_column_says_what_is_in_it(head: str) -> None:
    value = KEY if "Token" in head else WORD
    rows = f"| bob | {value} |\n| ada | `{value}` |\n| eve | changeme |\n| max | see the vault |"
    done = redact(f"Accounts:\n\n{head}\n{rows}\n\nand on")
    assert value not in done.text
    assert len(done.spans) == 2
    assert redact(done.text).spans == ()


def test_a_table_about_passwords_stays() -> None:
    rows = "| length | 12 | none |\n| kind | letters | `API_TOKEN` |"
    assert redact(f"| Setting | Password rule | Token |\n|---|---|---|\n{rows}\n").spans == ()


@pytest.mark.parametrize("code", [False, True])
@pytest.mark.parametrize(
    "line",
    [
        "DB_PASSWORD=\nDB_PORT=5432", "DB_PASSWORD=\nREDIS_URL=redis://localhost:6379/0",
        "POSTGRES_PASSWORD=\nPOSTGRES_USER=app", "password:\n  db_port9: 5432",
        '"SIGN_IN_PWD": "Contraseña"', '"SIGN_IN_PWD": "Пароль"', '"NEW_PWD": "输入新密码"',
        "* `password`: 次のいくつかの章では、その例を紹介します。", "- password: пароль пользователя",
        "docker run --name some-mariadb -p 3306:3306 mariadb:latest", "docker run -d --name mongo -p 27017:27017 mongo",
        "RUN apt-get install -y default-mysql-client && mkdir -p /usr/src/app",
        "docker run --rm --network mysql-net -w /usr/src/app node:20",
        "fields = ('username', 'password', 'address_line_1', 'address_line_2')",
        "insert into users (`id`, `password`, `phone1`) values", "`SMTP_PASSWORD`, `OBJECTSTORE_S3_KEY`",
        '"spring.security.user.password=password", "server.port=0"',
        'private static final String ATTACHED_PROPERTY_SOURCE_NAME = "x";',
        "ATTACHMENT_CONTENT_DISPOSITION_HEADER = 1", "map.from(token::getAccessTokenTimeToLive).to(x);",
        "Token::RecursiveZeroOrMore => {", 'authorization: "https://foursquare.com/oauth2/authenticate",',
        "Authorization: Basic dXNlcm5hbWU6cGFzc3dvcmQ=", "'password' => 'required|string|min:8',",
        'password: "%env(DATABASE_PASSWORD)%"', '"useVerificationToken",\n  "getUserByEmail",',
        "this.showPassword = !this.showPassword;", "ansible_password: !vault |",
        'password = getpass("Enter your password: ")', 'token = config.get("API_TOKEN_2")',
    ],
)  # fmt: skip
def test_what_is_written_alike_stays(line: str, code: bool) -> None:
    assert redact(f"\n{line}\n", code=code).spans == ()
