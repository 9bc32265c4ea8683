/** The pod of a proxy: its container, environment, probes and volumes. */
import { hash } from 'node:crypto'
import { proxyObjectName } from '../../model/proxy-names.ts'
import { rawLevel } from './config-file.ts'
import { deadlines, fileSetting, readinessPort, statsPort } from './own-settings.ts'
import { type EnvVar, joinResources, type ProxyParameters, type Resources } from './parameters.ts'
import type { ProxyEnvironment, ProxyPlan } from './plan.ts'
import { memoryMib, wholeProcessors } from './quantity.ts'

/** Name of the container of the proxy; overlays merge by it. */
const containerName = 'proxy'

const tokenFolder = '/var/run/secrets/xds-tokens'
const caFolder = '/etc/xds-tls'
const configFolder = '/config'
const stateFolder = '/var/lib/sluice'
const meshTokenFolder = '/var/run/secrets/tokens'
const meshCaFolder = '/var/run/secrets/istio'

/** User and group of the image. */
const user = 10_101

const defaultMesh = {
  caAddress: 'https://istiod.istio-system.svc:15012',
  trustDomain: 'cluster.local',
} as const

/** Sidecars and the ambient capture of a mesh keep out: the proxy itself speaks to the mesh. */
const meshLabels = {
  'sidecar.istio.io/inject': 'false',
  'istio.io/dataplane-mode': 'none',
} as const

const value = (name: string, text: string): EnvVar => ({ name, value: text })
const field = (name: string, fieldPath: string): EnvVar => ({
  name,
  valueFrom: { fieldRef: { apiVersion: 'v1', fieldPath } },
})

/** Requests, unless somebody limits the same thing: a limit is then the request too. */
function resourcesOf(given: Resources | undefined): Resources {
  const defaults = Object.entries({ cpu: '100m', memory: '128Mi' }).filter(
    ([name]) => given?.limits?.[name] === undefined,
  )
  if (defaults.length === 0) return given ?? {}
  return joinResources({ requests: Object.fromEntries(defaults) }, given) ?? {}
}

/** One thread for each processor that the container may use, and a heap that fits the memory. */
function sizing(parameters: ProxyParameters): EnvVar[] {
  const { cpu, memory } = resourcesOf(parameters.resources).limits ?? {}
  const processors = cpu === undefined ? undefined : wholeProcessors(cpu)
  const workers = Math.min(processors ?? 1, 256)
  const mib = memory === undefined ? undefined : memoryMib(memory)
  // Every thread has a heap of its own, the main one too; a quarter is left for what is outside.
  const heap = mib === undefined ? 0 : Math.floor((mib * 0.75) / (workers + 1))
  return [
    ...(processors === undefined || fileSetting(parameters, 'workers') !== undefined
      ? []
      : [value('SLUICE_WORKERS', String(workers))]),
    ...(heap < 16 ? [] : [value('NODE_OPTIONS', `--max-old-space-size=${heap}`)]),
  ]
}

function levelOf(parameters: ProxyParameters): EnvVar[] {
  const level = parameters.logging?.level
  // The variable wins over the file, and must not hide what only the file says.
  if (level === undefined && rawLevel(parameters) !== undefined) return []
  return [value('RUST_LOG', level ?? 'info')]
}

function meshEnv({ mesh }: ProxyParameters): EnvVar[] {
  if (mesh === undefined) return []
  const { caAddress, trustDomain } = { ...defaultMesh, ...mesh }
  return [value('CA_ADDRESS', caAddress), value('TRUST_DOMAIN', trustDomain)]
}

function generatedEnv(
  { namespace, name, parameters }: ProxyPlan,
  { xds }: ProxyEnvironment,
): readonly EnvVar[] {
  const { min, max } = deadlines(parameters)
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
    // A folder of its own: the mounted one belongs to root.
    value('SLUICE_STATE_DIR', `${stateFolder}/state`),
    field('SLUICE_ADVERTISE_ADDRESS', 'status.podIP'),
    ...unlessInFile('node', field('SLUICE_NODE', 'spec.nodeName')),
    // Empty where the cluster does not tell pods their zone, and an empty variable is none.
    ...unlessInFile('zone', field('SLUICE_ZONE', "metadata.labels['topology.kubernetes.io/zone']")),
    ...(min === undefined ? [] : [value('CONNECTION_MIN_TERMINATION_DEADLINE', `${min}s`)]),
    ...(max === undefined ? [] : [value('TERMINATION_GRACE_PERIOD_SECONDS', String(max))]),
    ...levelOf(parameters),
    ...meshEnv(parameters),
    ...sizing(parameters),
  ]
}

/** Named in values of other variables, which see only what stands before them. */
const referred = new Set(['POD_NAME', 'POD_NAMESPACE'])

/** Generated variables that nobody overrides, then the user's in the user's order. */
function envOf(plan: ProxyPlan, environment: ProxyEnvironment): readonly EnvVar[] {
  const own = new Map(plan.parameters.env?.map((one) => [one.name, one]))
  const generated = generatedEnv(plan, environment).flatMap((one) => {
    const other = own.get(one.name)
    if (other === undefined) return [one]
    if (!referred.has(one.name)) return []
    own.delete(one.name)
    return [other]
  })
  return [...generated, ...own.values()]
}

function imageOf({ image = {} }: ProxyParameters, environment: ProxyEnvironment): string {
  const { registry, repository, tag, digest } = { ...environment.image, ...withoutEmpty(image) }
  const place = registry === '' ? repository : `${registry.replace(/\/+$/, '')}/${repository}`
  return digest === undefined ? `${place}:${tag}` : `${place}@${digest}`
}

function withoutEmpty<Part extends object>(part: Part): Part {
  return Object.fromEntries(Object.entries(part).filter(([, text]) => text !== '')) as Part
}

/** A proxy that waits for its controller is not helped by being started again. */
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
    // In memory: the last good configuration has secret values.
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

function token(audience: string, path: string): object {
  return { serviceAccountToken: { audience, expirationSeconds: 43_200, path } }
}

/** Metadata and spec of the pods; `labels` are those of the Gateway. */
export function podTemplate(
  plan: ProxyPlan,
  environment: ProxyEnvironment,
  labels: Readonly<Record<string, string>>,
  config: string,
): object {
  const { annotations, parameters } = plan
  const { graceSeconds } = deadlines(parameters)
  const metrics = statsPort(parameters)
  const { volumes, volumeMounts } = volumesOf(plan, environment)
  const { pullPolicy } = parameters.image ?? {}
  return {
    metadata: {
      labels: { ...(parameters.mesh && meshLabels), ...labels },
      annotations: {
        ...scrapeAnnotations(metrics),
        ...annotations,
        // The file is read at the start alone: pods with another one are other pods.
        'checksum/config': hash('sha256', config),
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
        // Listeners have low ports, and the proxy is nobody.
        sysctls: [{ name: 'net.ipv4.ip_unprivileged_port_start', value: '0' }],
      },
      containers: [
        {
          name: containerName,
          image: imageOf(parameters, environment),
          ...(pullPolicy && { imagePullPolicy: pullPolicy }),
          args: ['proxy', '--config', `${configFolder}/config.yaml`],
          env: envOf(plan, environment),
          ports:
            metrics === undefined
              ? []
              : [{ name: 'metrics', containerPort: metrics, protocol: 'TCP' }],
          resources: resourcesOf(parameters.resources),
          securityContext: {
            allowPrivilegeEscalation: false,
            capabilities: { drop: ['ALL'] },
            readOnlyRootFilesystem: true,
            runAsNonRoot: true,
            runAsUser: user,
          },
          ...probesOf(parameters),
          volumeMounts,
        },
      ],
      volumes,
    },
  }
}
