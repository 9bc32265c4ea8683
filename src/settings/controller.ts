/**
 * The settings of `sluice controller`: one row is a command-line option, an environment variable and
 * a line of docs/settings.md, with the rules of `src/settings.ts`.
 */
import { parseDurationMs } from '../base/duration.ts'
import { isObject } from '../base/json-object.ts'
import type { LabelSelector } from '../base/label-selector.ts'
import { failAll, type Outcome, succeed } from '../base/outcome.ts'
import { readWord } from './readers.ts'
import { row, type SettingProblem, type SettingRow } from './row.ts'

const addressPattern = /^(?:\[[0-9A-Fa-f:.]+\]|[^\s:[\]]*):([0-9]{1,5})$/

function readAddress(text: string): string | undefined {
  const port = addressPattern.exec(text)?.[1]
  return port !== undefined && Number(port) <= 65_535 ? text : undefined
}

const readText = (text: string) => (text.trim() === '' ? undefined : text)
const readNamespace = (text: string) =>
  /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/.test(text) ? text : undefined

const natsForm = '`nats://host:port`, or `tls://`'

/** Another scheme would be taken for the name of a host, and asked for again and again. */
function readServer(text: string): string | undefined {
  const isServer = /^(?:nats|tls):\/\/[^\s/]+$/.test(text) && URL.canParse(text)
  return isServer ? text : undefined
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

const operators = ['In', 'NotIn', 'Exists', 'DoesNotExist']

function isExpression(value: unknown): boolean {
  if (!isObject(value) || typeof value.key !== 'string') return false
  const { operator, values = [] } = value
  if (!Array.isArray(values) || values.some((one) => typeof one !== 'string')) return false
  const needsValues = operator === 'In' || operator === 'NotIn'
  return operators.includes(String(operator)) && needsValues === values.length > 0
}

function isSelector(value: unknown): boolean {
  if (!isObject(value)) return false
  const { matchLabels = {}, matchExpressions = [], ...rest } = value
  return (
    Object.keys(rest).length === 0 &&
    isObject(matchLabels) &&
    Object.values(matchLabels).every((label) => typeof label === 'string') &&
    Array.isArray(matchExpressions) &&
    matchExpressions.every(isExpression)
  )
}

function readSelectors(text: string): readonly LabelSelector[] | undefined {
  const value = parseJson(text)
  return Array.isArray(value) && value.every(isSelector) ? (value as LabelSelector[]) : undefined
}

/** GatewayParameters that a GatewayClass made by the controller refers to. */
interface ClassParameters {
  readonly group?: string
  readonly kind?: string
  readonly namespace: string
  readonly name: string
}

const isText = (value: unknown) => typeof value === 'string' && value !== ''

function readClassParameters(text: string): Readonly<Record<string, ClassParameters>> | undefined {
  const value = parseJson(text)
  if (!isObject(value)) return undefined
  const isWhole = Object.values(value).every(
    (one) => isObject(one) && isText(one.name) && isText(one.namespace),
  )
  return isWhole ? (value as unknown as Record<string, ClassParameters>) : undefined
}

type LogLevel = 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'silent'

function readDuration(text: string): number | undefined {
  const ms = parseDurationMs(text)
  return ms !== undefined && ms >= 1_000 && ms <= 300_000 ? ms : undefined
}

function readBoolean(text: string): boolean | undefined {
  return text === 'true' ? true : text === 'false' ? false : undefined
}

function readCount(text: string): number | undefined {
  return /^[0-9]{1,12}$/.test(text) ? Number(text) : undefined
}

function readPort(text: string): number | undefined {
  const port = Number(text)
  return /^[0-9]{1,5}$/.test(text) && port >= 1 && port <= 65_535 ? port : undefined
}

const addressForm = '`host:port` or `:port`'

export const controllerSettings = {
  kubeconfig: row<string | undefined>({
    flag: 'kubeconfig',
    env: 'SLUICE_KUBECONFIG',
    form: 'a path',
    read: readText,
    default: undefined,
    defaultText: "the pod's service account, otherwise `KUBECONFIG`",
    doc: 'Kubeconfig file for the API server.',
  }),
  nats: row<string | undefined>({
    flag: 'nats',
    env: 'SLUICE_NATS',
    form: natsForm,
    read: readServer,
    default: undefined,
    defaultText: 'none',
    doc: 'NATS server that stores the event log. Any number of replicas can share it.',
  }),
  logFile: row<string | undefined>({
    flag: 'log-file',
    env: 'SLUICE_LOG_FILE',
    form: 'a path',
    read: readText,
    default: undefined,
    defaultText: "a file in the user's state folder",
    doc: 'File that stores the event log of a single replica.',
  }),
  namespace: row<string | undefined>({
    flag: 'namespace',
    env: 'POD_NAMESPACE',
    form: 'a namespace',
    read: readNamespace,
    default: undefined,
    defaultText: 'the namespace of the service account or context, otherwise `default`',
    doc: 'Namespace of the controller: it stores its lease and the key of secret digests there.',
  }),
  xdsAddress: row({
    flag: 'xds-address',
    env: 'SLUICE_XDS_ADDRESS',
    form: addressForm,
    read: readAddress,
    default: ':9978',
    doc: 'Address of the xDS server (gRPC) that configures proxies.',
  }),
  healthAddress: row({
    flag: 'health-address',
    env: 'SLUICE_HEALTH_ADDRESS',
    form: addressForm,
    read: readAddress,
    default: ':9093',
    doc: 'Address of the health server: `/healthz` and `/readyz`.',
  }),
  metricsAddress: row({
    flag: 'metrics-address',
    env: 'SLUICE_METRICS_ADDRESS',
    form: addressForm,
    read: readAddress,
    default: ':9092',
    doc: 'Address of the metrics server. Prometheus scrapes `/metrics`.',
  }),
  replica: row<string | undefined>({
    env: 'POD_NAME',
    form: 'a name',
    read: readText,
    default: undefined,
    defaultText: 'the host name',
    doc: 'Name of this replica in the lease and the log.',
  }),
  namespaceSelectors: row<readonly LabelSelector[]>({
    env: 'SLUICE_DISCOVERY_NAMESPACE_SELECTORS',
    form: 'JSON list of label selectors',
    read: readSelectors,
    default: [],
    defaultText: '`[]` (all namespaces)',
    doc: 'Namespaces that the controller watches: those that match at least one selector, re-evaluated when labels change. The namespace of the controller is always included.',
  }),
  classParameters: row<Readonly<Record<string, ClassParameters>>>({
    env: 'SLUICE_GATEWAY_CLASS_PARAMETERS_REFS',
    form: 'JSON object: class name to `{group, kind, namespace, name}`',
    read: readClassParameters,
    default: {},
    defaultText: '`{}`',
    doc: '`parametersRef` of each GatewayClass that the controller creates, by class name.',
  }),
  leaseDurationMs: row({
    env: 'SLUICE_LEASE_DURATION',
    form: 'a duration from `1s` to `5m`',
    read: readDuration,
    default: 15_000,
    defaultText: '`15s`',
    doc: 'Lease duration: if the leader does not renew its lease for this long, another replica takes over. The leader stops writing after two thirds of it.',
  }),
  logRetention: row({
    env: 'SLUICE_LOG_RETENTION',
    form: 'a number of events',
    read: readCount,
    default: 1_000_000,
    doc: 'Number of events kept before the last snapshot. `0` keeps all events.',
  }),
  xdsTls: row({
    env: 'SLUICE_XDS_TLS_ENABLED',
    form: '`true` or `false`',
    read: readBoolean,
    default: false,
    doc: 'Serve configuration over TLS, with the Secret `sluice-xds-cert` mounted at `/etc/xds-tls`.',
  }),
  xdsTlsDir: row({
    flag: 'xds-tls-dir',
    env: 'SLUICE_XDS_TLS_DIR',
    form: 'a path',
    read: readText,
    default: '/etc/xds-tls',
    doc: 'Folder in which the Secret `sluice-xds-cert` is mounted (`tls.crt`, `tls.key` and `ca.crt`). The files are reloaded when they change.',
  }),
  xdsServiceName: row<string | undefined>({
    env: 'SLUICE_XDS_SERVICE_NAME',
    form: 'the name of a Service',
    read: readNamespace,
    default: undefined,
    defaultText: 'none (the controller deploys no proxies)',
    doc: "Name of the controller's own Service, to which deployed proxies connect.",
  }),
  xdsServicePort: row({
    env: 'SLUICE_XDS_SERVICE_PORT',
    form: 'a port',
    read: readPort,
    default: 9978,
    doc: 'xDS port of that Service.',
  }),
  deploymentName: row<string | undefined>({
    env: 'SLUICE_DEPLOYMENT_NAME',
    form: 'the name of a Deployment',
    read: readText,
    default: undefined,
    defaultText: 'none',
    doc: "Name of the controller's own Deployment. It owns the lease and the Secret, so that both are deleted with it.",
  }),
  clusterRoleName: row<string | undefined>({
    env: 'SLUICE_CLUSTER_ROLE_NAME',
    form: 'the name of a ClusterRole',
    read: readText,
    default: undefined,
    defaultText: 'none',
    doc: "Name of the installation's ClusterRole. It owns the default GatewayClass, so that the class is deleted with it.",
  }),
  clusterDomain: row({
    env: 'SLUICE_CLUSTER_DOMAIN',
    form: 'a domain name',
    read: readText,
    default: 'cluster.local',
    doc: 'DNS suffix of that Service.',
  }),
  proxyImageRegistry: row({
    env: 'SLUICE_PROXY_IMAGE_REGISTRY',
    form: 'a registry, with an optional path',
    read: readText,
    default: 'ghcr.io/sluice-dev',
    doc: 'Registry of the image of deployed proxies, unless GatewayParameters override it.',
  }),
  proxyImageTag: row<string | undefined>({
    env: 'SLUICE_PROXY_IMAGE_TAG',
    form: 'a tag',
    read: readText,
    default: undefined,
    defaultText: 'the version of the controller',
    doc: 'Tag of the image of deployed proxies, unless GatewayParameters override it.',
  }),
  inferenceExtension: row({
    env: 'SLUICE_INFERENCE_EXTENSION_ENABLED',
    form: '`true` or `false`',
    read: readBoolean,
    default: false,
    doc: 'Whether the controller reads InferencePools and their Pods and routes to them. If disabled, requests for a pool fail with 500 and the route status gives the reason.',
  }),
  logLevel: row<LogLevel>({
    env: 'SLUICE_LOG_LEVEL',
    form: '`trace`, `debug`, `info`, `warn`, `error` or `silent`',
    read: readWord('trace', 'debug', 'info', 'warn', 'error', 'silent'),
    default: 'info',
    doc: 'Log level for stderr.',
  }),
} as const

export type ControllerSettingName = keyof typeof controllerSettings
export type ControllerSettings = {
  readonly [Name in ControllerSettingName]: (typeof controllerSettings)[Name] extends SettingRow<
    infer Value
  >
    ? Value
    : never
}

/** Reads every setting; the rules are those of `readSettings`. */
export function readControllerSettings(
  flags: Partial<Record<ControllerSettingName, string | undefined>>,
  env: Readonly<Record<string, string | undefined>>,
): Outcome<ControllerSettings, SettingProblem> {
  const values: Record<string, unknown> = {}
  const problems: SettingProblem[] = []
  for (const [name, setting] of Object.entries(controllerSettings)) {
    const flag = flags[name as ControllerSettingName]
    const text = flag ?? (env[setting.env] || undefined)
    const value = text === undefined ? setting.default : setting.read(text)
    if (text !== undefined && value === undefined) {
      const source = flag === undefined ? setting.env : `--${'flag' in setting ? setting.flag : ''}`
      problems.push({ source, message: `${JSON.stringify(text)} is not ${setting.form}` })
    }
    values[name] = value
  }
  if (values.nats !== undefined && flags.logFile !== undefined) {
    const message = 'a log is kept in a file or on a NATS server, not in both'
    problems.push({ source: '--log-file', message })
  }
  return problems.length > 0 ? failAll(problems) : succeed(values as ControllerSettings)
}
