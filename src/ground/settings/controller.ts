/** The settings of `sluice controller`. */
import { fail, type Outcome } from '../base/outcome.ts'
import { readTable, row, type SettingProblem, type ValuesOf } from './table.ts'
import {
  boolean,
  classParameters,
  eventCount,
  label,
  leaseDuration,
  listenAddress,
  natsServer,
  oneOf,
  path,
  port,
  retention,
  selectors,
  text,
} from './types.ts'

export const controllerSettings = {
  kubeconfig: row(path, {
    flag: 'kubeconfig',
    env: 'SLUICE_KUBECONFIG',
    defaultText: "the pod's service account, otherwise `KUBECONFIG`",
    doc: 'Kubeconfig file for the API server.',
  }),
  nats: row(natsServer, {
    flag: 'nats',
    env: 'SLUICE_NATS',
    doc: 'NATS server that stores the event log. Any number of replicas can share it.',
  }),
  logFile: row(path, {
    flag: 'log-file',
    env: 'SLUICE_LOG_FILE',
    defaultText: "a file in the user's state folder",
    doc: 'File that stores the event log of a single replica.',
  }),
  namespace: row(label('a namespace'), {
    flag: 'namespace',
    env: 'POD_NAMESPACE',
    defaultText: 'the namespace of the service account or context, otherwise `default`',
    doc: 'Namespace of the controller: it stores its lease and the key of secret digests there.',
  }),
  xdsAddress: row(listenAddress, {
    flag: 'xds-address',
    env: 'SLUICE_XDS_ADDRESS',
    default: ':9978',
    doc: 'Address of the xDS server (gRPC) that configures proxies.',
  }),
  healthAddress: row(listenAddress, {
    flag: 'health-address',
    env: 'SLUICE_HEALTH_ADDRESS',
    default: ':9093',
    doc: 'Address of the health server: `/healthz` and `/readyz`.',
  }),
  metricsAddress: row(listenAddress, {
    flag: 'metrics-address',
    env: 'SLUICE_METRICS_ADDRESS',
    default: ':9092',
    doc: 'Address of the metrics server. Prometheus scrapes `/metrics`.',
  }),
  replica: row(text('a name'), {
    env: 'POD_NAME',
    defaultText: 'the host name',
    doc: 'Name of this replica in the lease and the log.',
  }),
  namespaceSelectors: row(selectors, {
    env: 'SLUICE_DISCOVERY_NAMESPACE_SELECTORS',
    default: [],
    defaultText: '`[]` (all namespaces)',
    doc: 'Namespaces that the controller watches: those that match at least one selector, re-evaluated when labels change. The namespace of the controller is always included.',
  }),
  classParameters: row(classParameters, {
    env: 'SLUICE_GATEWAY_CLASS_PARAMETERS_REFS',
    default: {},
    defaultText: '`{}`',
    doc: '`parametersRef` of each GatewayClass that the controller creates, by class name.',
  }),
  leaseDurationMs: row(leaseDuration, {
    env: 'SLUICE_LEASE_DURATION',
    default: 15_000,
    defaultText: '`15s`',
    doc: 'Lease duration: if the leader does not renew its lease for this long, another replica takes over. The leader stops writing after two thirds of it.',
  }),
  logRetention: row(eventCount, {
    env: 'SLUICE_LOG_RETENTION',
    default: 1_000_000,
    doc: 'Number of events kept before the last snapshot. `0` keeps all events.',
  }),
  ledgerRetentionMs: row(retention, {
    env: 'SLUICE_LEDGER_RETENTION',
    default: 400 * 86_400_000,
    defaultText: '`400d`',
    doc: 'How long events of the ledger of budgets are kept. Sums of older events are in a snapshot, so that no balance changes. `0` keeps all events.',
  }),
  xdsTls: row(boolean, {
    env: 'SLUICE_XDS_TLS_ENABLED',
    default: false,
    doc: 'Serve configuration over TLS, with the Secret `sluice-xds-cert` mounted at `/etc/xds-tls`.',
  }),
  xdsTlsDir: row(path, {
    flag: 'xds-tls-dir',
    env: 'SLUICE_XDS_TLS_DIR',
    default: '/etc/xds-tls',
    doc: 'Folder in which the Secret `sluice-xds-cert` is mounted (`tls.crt`, `tls.key` and `ca.crt`). The files are reloaded when they change.',
  }),
  admissionAddress: row(listenAddress, {
    flag: 'admission-address',
    env: 'SLUICE_ADMISSION_ADDRESS',
    default: 'off',
    doc: 'Address of the [admission webhook](safe-change.md#at-kubectl-apply) `/validate` (HTTPS).',
  }),
  admissionTlsDir: row(path, {
    flag: 'admission-tls-dir',
    env: 'SLUICE_ADMISSION_TLS_DIR',
    default: '/etc/admission-tls',
    doc: 'Folder with the certificate of the webhook (`tls.crt` and `tls.key`). These files are reloaded when they change. If it has a file `token`, the path of the webhook is `/validate/TOKEN`.',
  }),
  admissionClientCa: row(path, {
    env: 'SLUICE_ADMISSION_CLIENT_CA',
    doc: 'File with the authorities of client certificates (PEM). If set, the webhook only answers clients that present one, as [the API server](safe-change.md#only-the-api-server) can.',
  }),
  admissionMode: row(oneOf('deny', 'warn'), {
    env: 'SLUICE_ADMISSION_MODE',
    default: 'deny',
    doc: 'Whether the webhook refuses changes that `changeProtection` with the mode Hold would hold, or only warns of them.',
  }),
  xdsServiceName: row(label('the name of a Service'), {
    env: 'SLUICE_XDS_SERVICE_NAME',
    defaultText: 'none (the controller deploys no proxies)',
    doc: "Name of the controller's own Service, to which deployed proxies connect.",
  }),
  xdsServicePort: row(port, {
    env: 'SLUICE_XDS_SERVICE_PORT',
    default: 9978,
    doc: 'xDS port of that Service.',
  }),
  deploymentName: row(text('the name of a Deployment'), {
    env: 'SLUICE_DEPLOYMENT_NAME',
    doc: "Name of the controller's own Deployment. It owns the lease and the Secret, so that both are deleted with it.",
  }),
  clusterRoleName: row(text('the name of a ClusterRole'), {
    env: 'SLUICE_CLUSTER_ROLE_NAME',
    doc: "Name of the installation's ClusterRole. It owns the default GatewayClass, so that the class is deleted with it.",
  }),
  clusterDomain: row(text('a domain name'), {
    env: 'SLUICE_CLUSTER_DOMAIN',
    default: 'cluster.local',
    doc: 'DNS suffix of that Service.',
  }),
  proxyImageRegistry: row(text('a registry, with an optional path'), {
    env: 'SLUICE_PROXY_IMAGE_REGISTRY',
    default: 'ghcr.io/sluice-dev',
    doc: 'Registry of the image of deployed proxies, unless GatewayParameters override it.',
  }),
  proxyImageTag: row(text('a tag'), {
    env: 'SLUICE_PROXY_IMAGE_TAG',
    defaultText: 'the version of the controller',
    doc: 'Tag of the image of deployed proxies, unless GatewayParameters override it.',
  }),
  proxyGrantStore: row(text('a NATS address'), {
    env: 'SLUICE_PROXY_GRANT_STORE',
    defaultText: 'a file of each proxy',
    doc: 'NATS servers (`nats://…`) where all deployed proxies keep the tokens that users allow them to have, unless `SLUICE_GRANT_STORE` in the `env` of GatewayParameters overrides it, such as with a Secret for an address with a password.',
  }),
  inferenceExtension: row(boolean, {
    env: 'SLUICE_INFERENCE_EXTENSION_ENABLED',
    default: false,
    doc: 'Whether the controller reads InferencePools and their Pods and routes to them. If disabled, requests for a pool fail with 500 and the route status gives the reason.',
  }),
  kubernetesEvents: row(boolean, {
    env: 'SLUICE_KUBERNETES_EVENTS',
    default: true,
    doc: 'Whether the leader writes Kubernetes Events when conditions of objects change and when proxies reject configuration. `kubectl describe` shows them.',
  }),
  logLevel: row(oneOf('trace', 'debug', 'info', 'warn', 'error', 'silent'), {
    env: 'SLUICE_LOG_LEVEL',
    default: 'info',
    doc: 'Log level for stderr.',
  }),
} as const

export type ControllerSettingName = keyof typeof controllerSettings
export type ControllerSettings = ValuesOf<typeof controllerSettings>

export function readControllerSettings(
  flags: Partial<Record<ControllerSettingName, string>>,
  env: Readonly<Record<string, string | undefined>>,
): Outcome<ControllerSettings, SettingProblem> {
  const read = readTable(controllerSettings, flags, env)
  if (!read.ok || read.value.nats === undefined || flags.logFile === undefined) return read
  const message = 'a log is stored in a file or on a NATS server, not in both'
  return fail({ source: '--log-file', message })
}
