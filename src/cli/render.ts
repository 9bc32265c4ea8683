/** `sluice render`: the objects that the Gateways of manifests would get, without a cluster. */
import { readFileSync } from 'node:fs'
import { stringify } from 'yaml'
import { proxyEnvironment } from '../deploy/environment.ts'
import {
  type ProxyEnvironment,
  type RenderedObject,
  renderProxy,
} from '../desired/deployment/index.ts'
import {
  type DeploymentView,
  gatewayDeploymentStage,
} from '../desired/derive/gateway-deployment.ts'
import { type ObjectRef, parseObjectKey } from '../model/names.ts'
import { type Fold, replay } from '../replay/index.ts'
import { type ControllerSettings, readControllerSettings } from '../settings/controller.ts'
import { formatProblem, isUnreadable } from '../watch/source-problem.ts'
import { listManifests } from './offline.ts'
import { exitCode, type Output, UsageError } from './output.ts'
import { usageProblems } from './traffic.ts'
import { packageVersion } from './version.ts'

export interface RenderOptions {
  readonly file: readonly string[]
  /** Only this Gateway, `namespace/name`. */
  readonly gateway?: string
  /** Namespace of the controller. */
  readonly namespace?: string
  /** Authorities of its certificate, where it serves configuration over TLS. */
  readonly xdsCaFile?: string
  readonly output: 'yaml' | 'json'
}

/** Readers of Kubernetes take `yes` and `1_0` for what YAML 1.1 has. */
const yamlForm = { version: '1.1', aliasDuplicateObjects: false } as const

const defaultNamespace = 'sluice-system'
const defaultService = 'sluice'

function readCa({ xdsTls }: ControllerSettings, path: string | undefined): string | undefined {
  if (path === undefined) {
    if (!xdsTls) return undefined
    throw new UsageError('SLUICE_XDS_TLS_ENABLED: name the authorities with --xds-ca-file')
  }
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    throw new UsageError(`--xds-ca-file: ${error instanceof Error ? error.message : error}`)
  }
}

/** As a controller with the environment of this process would have it. */
function environmentOf({ namespace, xdsCaFile }: RenderOptions): ProxyEnvironment {
  const settings = readControllerSettings(namespace === undefined ? {} : { namespace }, process.env)
  if (!settings.ok) throw usageProblems(settings.problems)
  const { value } = settings
  return proxyEnvironment({
    version: packageVersion(),
    namespace: value.namespace ?? defaultNamespace,
    serviceName: value.xdsServiceName ?? defaultService,
    servicePort: value.xdsServicePort,
    clusterDomain: value.clusterDomain,
    imageRegistry: value.proxyImageRegistry,
    imageTag: value.proxyImageTag,
    ca: readCa(value, xdsCaFile),
  })
}

interface Rendering {
  readonly objects: readonly RenderedObject[]
  readonly problems: readonly string[]
  readonly notes: readonly string[]
}

function renderAll(fold: Fold, environment: ProxyEnvironment, only: string | undefined): Rendering {
  const objects: RenderedObject[] = []
  const problems: string[] = []
  const notes: string[] = []
  let isFound = false
  for (const [key, deployment] of [...fold.deployments()].sort(([a], [b]) => (a < b ? -1 : 1))) {
    const ref = parseObjectKey(key)
    const name = `${ref.namespace}/${ref.name}`
    if (only !== undefined && only !== name) continue
    isFound = true
    const view = fold.graph.valueOf<DeploymentView>(gatewayDeploymentStage.name, ref)
    for (const note of view?.notes ?? []) notes.push(`Gateway ${name}: ${note}`)
    if (deployment.state === 'wanted') {
      const rendered = renderProxy(deployment.plan, environment)
      if (rendered.ok) objects.push(...rendered.value)
      else problems.push(...rendered.problems.map((text) => `Gateway ${name}: ${text}`))
    } else if (deployment.state === 'held') {
      problems.push(`Gateway ${name}: ${whyHeld(fold, ref)}`)
    }
  }
  if (only !== undefined && !isFound)
    problems.push(`--gateway: Gateway ${only} (namespace/name) is not in these manifests`)
  return { objects, problems, notes }
}

/** What the Gateway's condition says of it. */
function whyHeld(fold: Fold, ref: ObjectRef): string {
  const { conditions = [] } = (fold.statusOf(ref) ?? {}) as {
    conditions?: readonly { readonly type: string; readonly message: string }[]
  }
  return conditions.find(({ type }) => type === 'Accepted')?.message ?? 'not accepted'
}

/**
 * Exit code 1 where an object is invalid or a Gateway cannot be rendered, 2 where a file cannot be
 * read; what can be rendered is printed.
 */
export async function render(options: RenderOptions, output: Output): Promise<number> {
  const environment = environmentOf(options)
  const recording = await listManifests(options.file)
  const { fold } = await replay(recording.events, recording.derivation)
  const { objects, problems, notes } = renderAll(fold, environment, options.gateway)
  const errors = recording.problems.filter(({ severity }) => severity === 'error')
  for (const problem of recording.problems) output.report(formatProblem(problem))
  for (const text of [...notes, ...problems]) output.report(text)
  if (options.output === 'json') {
    const list = { apiVersion: 'v1', kind: 'List', items: objects }
    output.print(JSON.stringify(list, undefined, 2))
  } else {
    const documents = objects.map((object) => stringify(object, yamlForm))
    if (documents.length > 0) output.print(documents.join('---\n').trimEnd())
  }
  if (errors.some(isUnreadable)) return exitCode.usage
  return errors.length + problems.length === 0 ? exitCode.fine : exitCode.no
}
