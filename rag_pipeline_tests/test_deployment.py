"""What is deployed hangs together: instances, compose and Kubernetes name what exists, and no secret is in them."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from dagster._config import validate_config
from dagster._core.instance.config import dagster_instance_config_schema

ROOT = Path(__file__).resolve().parents[1]
DEPLOY = ROOT / "deploy"
CHART: Mapping[str, Any] = {
    "global": {"postgresqlSecretName"},
    "postgresql": {"enabled", "postgresqlHost", "postgresqlUsername", "postgresqlDatabase", "service"},
    "generatePostgresqlPasswordSecret": None,
    "dagsterWebserver": {"service", "resources"},
    "ingress": {"enabled"},
    "dagster-user-deployments": {"enabled", "enableSubchart", "deployments"},
    "runLauncher": {"type", "config"},
    "dagsterDaemon": {"enabled", "runCoordinator", "runMonitoring", "runRetries", "schedules", "sensors"},
    "retention": {"enabled", "schedule", "sensor"},
    "telemetry": {"enabled"},
    "additionalInstanceConfig": None,
}
"""Keys that the chart has: read from its schema (`helm/dagster/schema` in dagster-io/dagster), by hand."""
DEPLOYMENT = {
    "name", "image", "dagsterApiGrpcArgs", "port", "includeConfigInLaunchedRuns", "envConfigMaps", "envSecrets",
    "podSecurityContext", "volumes", "volumeMounts", "resources",
}  # fmt: skip
SHARED = ("envConfigMaps", "envSecrets", "volumes", "volumeMounts")
LAUNCHER = {*SHARED, "imagePullPolicy", "failPodOnRunFailure", "resources", "runK8sConfig"}
RUN = {"containerConfig", "podSpecConfig", "podTemplateSpecMetadata", "jobSpecConfig", "jobMetadata"}
MONITORING = {
    "enabled": "enabled", "pollIntervalSeconds": "poll_interval_seconds",
    "startTimeoutSeconds": "start_timeout_seconds", "cancelTimeoutSeconds": "cancel_timeout_seconds",
    "maxResumeRunAttempts": "max_resume_run_attempts",
    "freeSlotsAfterRunEndSeconds": "free_slots_after_run_end_seconds",
}  # fmt: skip


def read(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


@pytest.fixture
def one_machine() -> Any:
    return read(ROOT / "dagster.yaml")


@pytest.fixture
def workers() -> Any:
    return read(DEPLOY / "celery" / "dagster.yaml")


@pytest.fixture
def compose() -> Any:
    return read(ROOT / "docker-compose.yml")


@pytest.fixture
def values() -> Any:
    return read(DEPLOY / "kubernetes" / "values.yaml")


def manifests() -> Iterator[Any]:
    for path in sorted((DEPLOY / "kubernetes").glob("*.yaml")):
        if path.name != "values.yaml":
            yield from yaml.safe_load_all(path.read_text(encoding="utf-8"))


def pods() -> Iterator[Any]:
    for found in manifests():
        if "template" in found.get("spec", {}):
            yield found["spec"]["template"]["spec"]


def settings_of_compose() -> dict[str, str]:
    lines = (DEPLOY / "celery" / "compose.env").read_text(encoding="utf-8").splitlines()
    return dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))


def test_dagster_knows_every_key_of_both_instances(one_machine, workers):
    for instance in (one_machine, workers):
        result = validate_config(dagster_instance_config_schema(), instance)
        assert result.success, result.errors


def test_with_workers_nothing_is_different_but_what_is_about_workers(one_machine, workers):
    launcher = workers.pop("run_launcher")
    assert "run_launcher" not in one_machine
    assert workers["run_monitoring"].pop("start_timeout_seconds") > one_machine["run_monitoring"].pop(
        "start_timeout_seconds"
    )
    assert workers == one_machine
    assert launcher["module"] == "rag_pipeline.defs.celery.launcher"
    assert read(DEPLOY / "celery" / "workspace.yaml") == read(ROOT / "workspace.yaml")


def test_the_periods_with_workers_fit_each_other(workers):
    config, monitoring = workers["run_launcher"]["config"], workers["run_monitoring"]
    # One missed answer ends no run; what was taken and not begun comes back before it counts as never started.
    assert config["silence_s"] > 2 * monitoring["poll_interval_seconds"]
    visibility_s = config["config_source"]["broker_transport_options"]["visibility_timeout"]
    assert visibility_s < monitoring["start_timeout_seconds"]
    assert config["config_source"]["task_acks_late"] is True
    assert monitoring["max_resume_run_attempts"] == 0


def test_dagster_celery_takes_the_launcher_s_configuration(workers):
    pytest.importorskip("dagster_celery", reason="the extra `celery` is not installed")
    import dagster as dg

    from rag_pipeline.defs.celery.launcher import CeleryLauncher

    result = validate_config(dg.Field(CeleryLauncher.config_type()).config_type, workers["run_launcher"]["config"])
    assert result.success, result.errors


def test_compose_has_as_many_places_for_runs_as_are_let_out(compose, workers):
    worker = compose["services"]["worker"]
    places = int(worker["command"][worker["command"].index("--concurrency") + 1]) * worker["deploy"]["replicas"]
    assert places == workers["concurrency"]["runs"]["max_concurrent_runs"]
    assert worker["profiles"] == compose["services"]["redis"]["profiles"] == ["celery"]
    assert worker["deploy"]["replicas"] == 2


def test_compose_starts_without_any_variable_and_its_dependencies_exist(compose):
    text = (ROOT / "docker-compose.yml").read_text(encoding="utf-8")
    assert all(":-" in found for found in re.findall(r"(?<!\$)\$\{([^}]+)\}", text))
    services = compose["services"]
    for name, service in services.items():
        needed = service.get("depends_on", {})
        assert needed.keys() <= services.keys(), name
        # What is always started must not wait for what a profile starts.
        assert not [other for other in needed if services[other].get("profiles") and not service.get("profiles")]
        named = [volume.split(":")[0] for volume in service.get("volumes", ()) if isinstance(volume, str)]
        assert {volume for volume in named if not volume.startswith(".")} <= compose["volumes"].keys(), name
        for volume in named:
            assert not volume.startswith(".") or (ROOT / volume).exists(), volume


def test_the_containers_see_the_configuration_and_the_repository_that_it_names_by_a_relative_path(compose):
    config = compose["x-pipeline"]["environment"]["RAG_CONFIG"]
    mounted = dict(reversed(volume.split(":")[:2]) for volume in compose["x-pipeline"]["volumes"])
    here = ROOT / mounted[str(Path(config).parent)]
    named = tomllib.loads((here / Path(config).name).read_text(encoding="utf-8"))
    assert (here / named["repositories"][0]["source"] / "rag_pipeline" / "definitions.py").is_file()
    assert {"path": ".env", "required": False} in compose["x-pipeline"]["env_file"]


def test_what_switches_workers_on_names_files_that_the_image_has(compose):
    settings = settings_of_compose()
    assert settings["COMPOSE_PROFILES"] == "celery"
    lock = settings["RAG_REQUIREMENTS"]
    assert "dagster-celery==" in (ROOT / lock).read_text(encoding="utf-8")
    docker = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    for name in (lock, "requirements-kubernetes.lock", "requirements.lock"):
        assert name in docker
        assert f"!{name}" in ignored
    mounted = {volume.split(":")[1]: volume.split(":")[0] for volume in compose["x-pipeline"]["volumes"][2:3]}
    folder = ROOT / mounted[settings["RAG_DAGSTER_HOME"]]
    assert (folder / "dagster.yaml").is_file()


def test_the_optional_engines_are_in_no_image_that_does_not_ask_for_them():
    text = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    assert not re.findall(r"^(dagster-celery|celery|redis|dagster-k8s|kubernetes)==", text, re.MULTILINE)


def test_the_chart_has_every_key_of_the_values(values):
    assert values.keys() <= CHART.keys()
    for name, known in CHART.items():
        assert known is None or values[name].keys() <= known, name
    for deployment in values["dagster-user-deployments"]["deployments"]:
        assert deployment.keys() <= DEPLOYMENT
    launcher = values["runLauncher"]["config"]["k8sRunLauncher"]
    assert launcher.keys() <= LAUNCHER
    assert launcher["runK8sConfig"].keys() <= RUN
    # Runs share settings, secrets and RAG_HOME with the code server, and have resources of their own.
    assert not deployment["includeConfigInLaunchedRuns"]["enabled"]
    assert {name: launcher[name] for name in SHARED} == {name: deployment[name] for name in SHARED}
    assert launcher["runK8sConfig"]["podSpecConfig"]["securityContext"] == deployment["podSecurityContext"]
    assert launcher["resources"]["limits"] != deployment["resources"]["limits"]
    assert values["dagsterDaemon"]["runMonitoring"].keys() <= MONITORING.keys()


def test_runs_on_kubernetes_are_looked_after_as_on_one_machine(values, one_machine):
    more = values["additionalInstanceConfig"]
    assert validate_config(dagster_instance_config_schema(), more).success
    assert more["concurrency"]["pools"] == one_machine["concurrency"]["pools"]
    monitoring = {MONITORING[key]: value for key, value in values["dagsterDaemon"]["runMonitoring"].items()}
    assert monitoring.pop("start_timeout_seconds") > one_machine["run_monitoring"].pop("start_timeout_seconds")
    assert monitoring == one_machine["run_monitoring"]
    assert values["dagsterDaemon"]["runRetries"]["maxRetries"] == one_machine["run_retries"]["max_retries"]


def test_the_chart_s_version_is_that_of_the_dagster_in_the_image():
    text = (DEPLOY / "kubernetes" / "values.yaml").read_text(encoding="utf-8")
    (version,) = re.findall(r"--version (\S+)", text)
    lock = (ROOT / "requirements-kubernetes.lock").read_text(encoding="utf-8")
    assert f"\ndagster=={version} " in lock
    assert "\ndagster-k8s==" in lock


def test_every_pod_runs_the_same_image_with_the_same_settings_and_secrets(values):
    (deployment,) = values["dagster-user-deployments"]["deployments"]
    image = f"{deployment['image']['repository']}:{deployment['image']['tag']}"
    known = {(found["kind"], found["metadata"]["name"]) for found in manifests()}
    claimed = {volume["persistentVolumeClaim"]["claimName"] for volume in deployment["volumes"][:1]}
    assert {("PersistentVolumeClaim", name) for name in claimed} <= known
    assert ("ConfigMap", deployment["envConfigMaps"][0]["name"]) in known
    containers = [container for pod in pods() for container in pod["containers"]]
    assert len(containers) == 2
    for container in containers:
        assert container["image"] == image
        names = [source.get("configMapRef", source.get("secretRef"))["name"] for source in container["envFrom"]]
        assert names == [deployment["envConfigMaps"][0]["name"], deployment["envSecrets"][0]["name"]]
        assert container["securityContext"]["allowPrivilegeEscalation"] is False
    assert all(pod["securityContext"]["runAsUser"] == 10001 for pod in pods())
    assert "useradd --uid 10001" in (ROOT / "Dockerfile").read_text(encoding="utf-8")


def test_no_secret_is_written_into_what_is_deployed(values):
    def keys(value: object, path: str = "") -> Iterator[str]:
        if isinstance(value, dict):
            for name, inner in value.items():
                yield from keys(inner, f"{path}.{name}")
        elif isinstance(value, list):
            for inner in value:
                yield from keys(inner, path)
        elif isinstance(value, str):
            yield path

    told = [path for found in (values, *manifests()) for path in keys(found)]
    assert len(told) > 50
    named = ("password", "token", "DATABASE_URL", "api_key")
    assert not [path for path in told if any(name.lower() in path.lower().rpartition(".")[2] for name in named)]
    assert not [found for found in manifests() if found["kind"] == "Secret"]
    assert not re.findall(r"postgres(?:ql)?://[^\s]*:[^\s]*@", "".join(map(str, (values, *manifests()))))


def test_the_probes_ask_what_the_service_answers():
    from rag_pipeline.serving.routes.health import router

    (serve,) = [pod for pod in pods() if pod["containers"][0]["name"] == "serve"]
    container = serve["containers"][0]
    asked = {container[f"{kind}Probe"]["httpGet"]["path"] for kind in ("startup", "liveness", "readiness")}
    assert asked <= {route.path for route in router.routes}
    assert container["readinessProbe"]["httpGet"]["path"] == "/health"
