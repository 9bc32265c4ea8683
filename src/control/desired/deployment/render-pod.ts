/** Renders the pod of a proxy: its container, environment, probes and volumes. */
import { hexDigest } from '../../../ground/base/digest.ts'
import { proxyObjectName } from '../../../ground/model/proxy-names.ts'
import { quantityValue } from '../../../ground/schema/quantity.ts'
import { rawLogLevel } from './config-file.ts'
import { fileSetting, readinessPort, shutdownDeadlines, statsPort } from './own-settings.ts'
import { type EnvVar, joinResources, type ProxyParameters, type Resources } from './parameters.ts'
import type { ProxyEnvironment, ProxyPlan } from './plan.ts'

/** Name of the proxy's container; overlays refer to it by this name. */
const containerName = 'proxy'

const tokenFolder = '/var/run/secrets/xds-tokens'
const caFolder = '/etc/xds-tls'
const configFolder = '/config'
const stateFolder = '/var/lib/sluice'
const catalogFolder = '/etc/model-catalogs'
const meshTokenFolder = '/var/run/secrets/tokens'
const meshCaFolder = '/var/run/secrets/istio'

/** User id and group id of the image. */
const user = 10_101

const defaultMesh = {
  caAddress: 'https://istiod.istio-system.svc:15012',
  trustDomain: 'cluster.local',
} as const

/** Security context of each container, as the restricted Pod Security Standard requires it. */
const securityContext = {
  allowPrivilegeEscalation: false,
  capabilities: { drop: ['ALL'] },
  readOnlyRootFilesystem: true,
  runAsNonRoot: true,
  runAsUser: user,
} as const

/** Name of the container that runs commands, and of the volume with its token. */
const stdioName = 'stdio'
const stdioFolder = '/var/run/sluice-stdio'
const stdioTokenFile = `${stdioFolder}/token`
const stdioAddress = '127.0.0.1:15022'

/** Excludes the pod from sidecar injection and ambient capture, since the proxy joins the mesh itself. */
const meshLabels = {
  'sidecar.istio.io/inject': 'false',
  'istio.io/dataplane-mode': 'none',
} as const

const value = (name: string, text: string): EnvVar => ({ name, value: text })
const field = (name: string, fieldPath: string): EnvVar => ({
  name,
  valueFrom: { fieldRef: { apiVersion: 'v1', fieldPath } },
})

/** Adds default requests, except for resources with a limit: Kubernetes uses the limit as request. */
function resourcesOf(given: Resources | undefined): Resources {
  const defaults = Object.entries({ cpu: '100m', memory: '128Mi' }).filter(
    ([name]) => given?.limits?.[name] === undefined,
  )
  if (defaults.length === 0) return given ?? {}
  return joinResources({ requests: Object.fromEntries(defaults) }, given) ?? {}
}

/** Sets one worker thread per CPU of the limit, and a heap size that fits the memory limit. */
function sizingEnv(parameters: ProxyParameters): EnvVar[] {
  const { cpu, memory } = resourcesOf(parameters.resources).limits ?? {}
  const processors = quantityValue(String(cpu)) ?? 0
  const workers = Math.min(Math.max(processors, 1), 256)
  const mib = Math.floor((quantityValue(String(memory)) ?? 0) / 1024 ** 2)
  // Each worker and the main thread have their own heap. A quarter is left for memory outside heaps.
  const heap = Math.floor((mib * 0.75) / (workers + 1))
  return [
    ...(processors <= 0 || fileSetting(parameters, 'workers') !== undefined
      ? []
      : [value('SLUICE_WORKERS', String(workers))]),
    ...(heap < 16 ? [] : [value('NODE_OPTIONS', `--max-old-space-size=${heap}`)]),
  ]
}

function levelOf(parameters: ProxyParameters): EnvVar[] {
  const level = parameters.logging?.level
  // The variable overrides the file, so it is left out if only the file sets a level.
  if (level === undefined && rawLogLevel(parameters) !== undefined) return []
  return [value('RUST_LOG', level ?? 'info')]
}

function meshEnv({ mesh }: ProxyParameters): EnvVar[] {
  if (mesh === undefined) return []
  const { caAddress, trustDomain } = { ...defaultMesh, ...mesh }
  return [value('CA_ADDRESS', caAddress), value('TRUST_DOMAIN', trustDomain)]
}

/** The catalogs of models, each with the name of its volume. */
const catalogsOf = ({ modelCatalog }: ProxyParameters) =>
  (modelCatalog?.sources ?? []).map(({ configMap: { name, key = 'catalog.json' } }, at) => ({
    volume: `model-catalog-${at}`,
    folder: `${catalogFolder}/${at}`,
    name,
    key,
  }))

function catalogEnv(parameters: ProxyParameters): EnvVar[] {
  const paths = catalogsOf(parameters).map(({ folder, key }) => `${folder}/${key}`)
  return paths.length === 0 ? [] : [value('SLUICE_MODEL_CATALOG', paths.join(','))]
}

function generatedEnv(
  { namespace, name, parameters }: ProxyPlan,
  { xds, grantStore }: ProxyEnvironment,
): readonly EnvVar[] {
  const { min, max } = shutdownDeadlines(parameters)
  const unlessInFile = (name: string, ...variables: EnvVar[]) =>
    fileSetting(parameters, name) === undefined ? variables : []
  return [
    field('POD_NAME', 'metadata.name'),
    field('POD_NAMESPACE', 'metadata.namespace'),
    field('NODE_NAME', 'spec.nodeName'),
    field('INSTANCE_IP', 'status.podIP'),
    field('SERVICE_ACCOUNT', 'spec.serviceAccountName'),
    value('SLUICE_PROXY_NAME', '$(POD_NAME).$(POD_NAMESPACE)'),
    value('SLUICE_GATEWAY', `${namespace}/${name}`),
    value('SLUICE_XDS_ADDRESS', `${xds.host}:${xds.port}`),
    value('SLUICE_XDS_TOKEN_FILE', `${tokenFolder}/xds-token`),
    ...(xds.ca === undefined ? [] : [value('SLUICE_XDS_CA_FILE', `${caFolder}/ca.crt`)]),
    // A subfolder, because root owns the mounted folder.
    value('SLUICE_STATE_DIR', `${stateFolder}/state`),
    field('SLUICE_ADVERTISE_ADDRESS', 'status.podIP'),
    ...unlessInFile('node', field('SLUICE_NODE', 'spec.nodeName')),
    // Empty if the cluster does not label pods with their zone; the proxy ignores an empty variable.
    ...unlessInFile('zone', field('SLUICE_ZONE', "metadata.labels['topology.kubernetes.io/zone']")),
    ...(grantStore === undefined
      ? []
      : unlessInFile('grantStore', value('SLUICE_GRANT_STORE', grantStore))),
    ...unlessInFile('modelCatalog', ...catalogEnv(parameters)),
    ...(min === undefined ? [] : [value('CONNECTION_MIN_TERMINATION_DEADLINE', `${min}s`)]),
    ...(max === undefined ? [] : [value('TERMINATION_GRACE_PERIOD_SECONDS', String(max))]),
    ...levelOf(parameters),
    ...meshEnv(parameters),
    ...stdioEnv(parameters),
    ...sizingEnv(parameters),
  ]
}

/** Values of other variables refer to these, so they must come first. */
const referencedVariables = new Set(['POD_NAME', 'POD_NAMESPACE'])

/** Generated variables that the user does not override, then the user's variables in their order. */
function envOf(plan: ProxyPlan, environment: ProxyEnvironment): readonly EnvVar[] {
  const own = new Map(plan.parameters.env?.map((one) => [one.name, one]))
  const generated = generatedEnv(plan, environment).flatMap((one) => {
    const other = own.get(one.name)
    if (other === undefined) return [one]
    if (!referencedVariables.has(one.name)) return []
    own.delete(one.name)
    return [other]
  })
  return [...generated, ...own.values()]
}

function imageOf(
  { image = {} }: Pick<ProxyParameters, 'image'>,
  environment: ProxyEnvironment,
): string {
  const { registry, repository, tag, digest } = { ...environment.image, ...withoutEmpty(image) }
  const place = registry === '' ? repository : `${registry.replace(/\/+$/, '')}/${repository}`
  return digest === undefined ? `${place}:${tag}` : `${place}@${digest}`
}

function withoutEmpty<Part extends object>(part: Part): Part {
  return Object.fromEntries(Object.entries(part).filter(([, text]) => text !== '')) as Part
}

/** There is no liveness probe: a restart does not help a proxy that waits for its controller. */
function probesOf(parameters: ProxyParameters): object {
  const port = readinessPort(parameters)
  if (port === undefined) return {}
  const probe = { httpGet: { path: '/healthz/ready', port } }
  return {
    startupProbe: { ...probe, periodSeconds: 1, timeoutSeconds: 2, failureThreshold: 600 },
    readinessProbe: { ...probe, periodSeconds: 10, timeoutSeconds: 2 },
  }
}

function scrapeAnnotations(port: number | undefined): Readonly<Record<string, string>> {
  if (port === undefined) return {}
  return {
    'prometheus.io/scrape': 'true',
    'prometheus.io/path': '/metrics',
    'prometheus.io/port': String(port),
  }
}

function volumesOf(
  { name, parameters }: ProxyPlan,
  { xds }: ProxyEnvironment,
): { volumes: object[]; volumeMounts: object[] } {
  const base = proxyObjectName(name)
  const volumes: object[] = [
    { name: 'config', configMap: { name: base } },
    { name: 'xds-token', projected: { sources: [token('sluice', 'xds-token')] } },
    // In memory, because the stored last good configuration contains secret values.
    { name: 'state', emptyDir: { medium: 'Memory' } },
    { name: 'tmp', emptyDir: {} },
  ]
  const mounts: object[] = [
    { name: 'config', mountPath: configFolder, readOnly: true },
    { name: 'xds-token', mountPath: tokenFolder, readOnly: true },
    { name: 'state', mountPath: stateFolder },
    { name: 'tmp', mountPath: '/tmp' },
  ]
  if (xds.ca !== undefined) {
    volumes.push({ name: 'xds-ca', configMap: { name: `${base}-xds-ca` } })
    mounts.push({ name: 'xds-ca', mountPath: caFolder, readOnly: true })
  }
  for (const { volume, folder, name: configMap, key } of catalogsOf(parameters)) {
    // Without the ConfigMap, the proxy starts with the catalog that it has.
    const source = { name: configMap, optional: true, items: [{ key, path: key }] }
    volumes.push({ name: volume, configMap: source })
    mounts.push({ name: volume, mountPath: folder, readOnly: true })
  }
  if (parameters.stdio !== undefined) {
    volumes.push(
      { name: stdioName, emptyDir: { medium: 'Memory' } },
      { name: 'stdio-tmp', emptyDir: {} },
    )
    mounts.push({ name: stdioName, mountPath: stdioFolder, readOnly: true })
  }
  if (parameters.mesh !== undefined) {
    volumes.push(
      { name: 'mesh-token', projected: { sources: [token('istio-ca', 'istio-token')] } },
      { name: 'mesh-ca', configMap: { name: 'istio-ca-root-cert', optional: true } },
    )
    mounts.push(
      { name: 'mesh-token', mountPath: meshTokenFolder, readOnly: true },
      { name: 'mesh-ca', mountPath: meshCaFolder, readOnly: true },
    )
  }
  return { volumes, volumeMounts: mounts }
}

/** Runs the MCP servers that are commands. Its variables are not those of the proxy, which may hold credentials. */
function stdioContainer(
  { parameters: { stdio = {}, image } }: ProxyPlan,
  environment: ProxyEnvironment,
): object {
  const { pullPolicy } = { ...image, ...stdio.image }
  return {
    name: stdioName,
    image: imageOf({ image: { ...image, ...stdio.image } }, environment),
    ...(pullPolicy && { imagePullPolicy: pullPolicy }),
    args: ['stdio', '--address', stdioAddress, '--token-file', stdioTokenFile],
    env: [value('HOME', '/tmp')],
    resources: resourcesOf(stdio.resources),
    securityContext,
    volumeMounts: [
      { name: stdioName, mountPath: stdioFolder },
      { name: 'stdio-tmp', mountPath: '/tmp' },
    ],
  }
}

function stdioEnv({ stdio }: ProxyParameters): EnvVar[] {
  if (stdio === undefined) return []
  return [
    value('SLUICE_STDIO_ADDRESS', stdioAddress),
    value('SLUICE_STDIO_TOKEN_FILE', stdioTokenFile),
    value('SLUICE_STDIO_NAMESPACES', stdio.namespaces ?? 'Same'),
  ]
}

function token(audience: string, path: string): object {
  return { serviceAccountToken: { audience, expirationSeconds: 43_200, path } }
}

function containerOf(
  plan: ProxyPlan,
  environment: ProxyEnvironment,
  volumeMounts: readonly object[],
): object {
  const { parameters } = plan
  const metrics = statsPort(parameters)
  const { pullPolicy } = parameters.image ?? {}
  return {
    name: containerName,
    image: imageOf(parameters, environment),
    ...(pullPolicy && { imagePullPolicy: pullPolicy }),
    args: ['proxy', '--config', `${configFolder}/config.yaml`],
    env: envOf(plan, environment),
    ports:
      metrics === undefined ? [] : [{ name: 'metrics', containerPort: metrics, protocol: 'TCP' }],
    resources: resourcesOf(parameters.resources),
    securityContext,
    ...probesOf(parameters),
    volumeMounts,
  }
}

/** Metadata and spec of the pods; `labels` are the labels of the Gateway's objects. */
export function podTemplate(
  plan: ProxyPlan,
  environment: ProxyEnvironment,
  labels: Readonly<Record<string, string>>,
  config: string,
): object {
  const { annotations, parameters } = plan
  const { graceSeconds } = shutdownDeadlines(parameters)
  const metrics = statsPort(parameters)
  const { volumes, volumeMounts } = volumesOf(plan, environment)
  return {
    metadata: {
      labels: { ...(parameters.mesh && meshLabels), ...labels },
      annotations: {
        ...scrapeAnnotations(metrics),
        ...annotations,
        // Pods read the file only when they start, so a changed file must replace the pods.
        'checksum/config': hexDigest('sha256', config),
      },
    },
    spec: {
      serviceAccountName: proxyObjectName(plan.name),
      automountServiceAccountToken: false,
      terminationGracePeriodSeconds: graceSeconds,
      securityContext: {
        runAsNonRoot: true,
        runAsUser: user,
        runAsGroup: user,
        fsGroup: user,
        seccompProfile: { type: 'RuntimeDefault' },
        // Allows the proxy, which does not run as root, to listen on ports below 1024.
        sysctls: [{ name: 'net.ipv4.ip_unprivileged_port_start', value: '0' }],
      },
      containers: [
        containerOf(plan, environment, volumeMounts),
        ...(parameters.stdio === undefined ? [] : [stdioContainer(plan, environment)]),
      ],
      volumes,
    },
  }
}
