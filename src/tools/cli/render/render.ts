/** `sluice render` prints the objects that the controller would deploy for the Gateways in manifests. */

import { stringify } from 'yaml'
import { proxyEnvironment } from '../../../control/deploy/environment.ts'
import type { ProxyEnvironment, RenderedObject } from '../../../control/desired/deployment/plan.ts'
import { renderProxy } from '../../../control/desired/deployment/render.ts'
import {
  type DeploymentView,
  gatewayDeploymentStage,
} from '../../../control/desired/derive/gateway-deployment.ts'
import { formatProblem, isUnreadable } from '../../../control/watch/source-problem.ts'
import { readWholeFile } from '../../../ground/base/read-whole-file.ts'
import { type ObjectRef, parseObjectKey } from '../../../ground/model/names.ts'
import { placedConditions } from '../../../ground/model/placed-conditions.ts'
import {
  type ControllerSettings,
  readControllerSettings,
} from '../../../ground/settings/controller.ts'
import type { Fold } from '../../../past/replay/index.ts'
import { foldRecording, readManifests } from '../recording/recording.ts'
import { manifestsResult } from '../shared/manifests.ts'
import { type CommandResult, exitCode, type Output, UsageError } from '../shared/output.ts'
import { valuesOf } from '../shared/settings.ts'
import { packageVersion } from '../shared/version.ts'

export interface RenderOptions {
  readonly file: readonly string[]
  /** The only Gateway to render, as `namespace/name`; all if omitted. */
  readonly gateway?: string
  /** Namespace of the controller. */
  readonly namespace?: string
  /** File with the certificate authorities that verify the controller, if it uses TLS. */
  readonly xdsCaFile?: string
}

/** Kubernetes reads YAML 1.1, in which unquoted `yes` and `1_0` are not strings. */
const yamlForm = { version: '1.1', aliasDuplicateObjects: false } as const

const defaultNamespace = 'sluice-system'
const defaultService = 'sluice'

function readCa({ xdsTls }: ControllerSettings, path: string | undefined): string | undefined {
  if (path === undefined) {
    if (!xdsTls) return undefined
    throw new UsageError(
      'SLUICE_XDS_TLS_ENABLED: name the certificate authorities with --xds-ca-file',
    )
  }
  try {
    return readWholeFile(path)
  } catch (error) {
    throw new UsageError(`--xds-ca-file: ${error instanceof Error ? error.message : error}`)
  }
}

/** The environment of proxies whose controller has the same environment variables as this process. */
function environmentOf({ namespace, xdsCaFile }: RenderOptions): ProxyEnvironment {
  const settings = valuesOf(readControllerSettings({ namespace }, process.env))
  return proxyEnvironment({
    version: packageVersion(),
    namespace: settings.namespace ?? defaultNamespace,
    serviceName: settings.xdsServiceName ?? defaultService,
    servicePort: settings.xdsServicePort,
    clusterDomain: settings.clusterDomain,
    imageRegistry: settings.proxyImageRegistry,
    imageTag: settings.proxyImageTag,
    grantStore: settings.proxyGrantStore,
    ca: readCa(settings, xdsCaFile),
  })
}

interface Rendering {
  readonly objects: readonly RenderedObject[]
  readonly problems: readonly string[]
  readonly notes: readonly string[]
}

function renderAll(
  fold: Fold,
  environment: ProxyEnvironment,
  onlyGateway: string | undefined,
): Rendering {
  const objects: RenderedObject[] = []
  const problems: string[] = []
  const notes: string[] = []
  let isFound = false
  for (const [key, deployment] of [...fold.deployments()].sort(([a], [b]) => (a < b ? -1 : 1))) {
    const ref = parseObjectKey(key)
    const name = `${ref.namespace}/${ref.name}`
    if (onlyGateway !== undefined && onlyGateway !== name) continue
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
  if (onlyGateway !== undefined && !isFound)
    problems.push(`--gateway: Gateway ${onlyGateway} (namespace/name) is not in these manifests`)
  return { objects, problems, notes }
}

/** Returns why the Gateway was not accepted, from its `Accepted` condition. */
function whyHeld(fold: Fold, ref: ObjectRef): string {
  const { condition } =
    placedConditions(fold.statusOf(ref)).find(
      ({ place, condition: { type } }) => place === '' && type === 'Accepted',
    ) ?? {}
  return condition?.message ?? 'not accepted'
}

/**
 * Prints the objects that can be rendered. The exit code is 1 if an object is invalid or a Gateway cannot be
 * rendered, and 2 if a file cannot be read or parsed.
 */
export async function render(
  options: RenderOptions,
  report: Output['report'],
): Promise<CommandResult> {
  const environment = environmentOf(options)
  const recording = await readManifests(options.file)
  const fold = await foldRecording(recording)
  const { objects, problems, notes } = renderAll(fold, environment, options.gateway)
  const texts = [...recording.problems.map(formatProblem), ...notes, ...problems]
  for (const text of texts) report(text)
  const errors = recording.problems.filter(({ severity }) => severity === 'error')
  const code = errors.length + problems.length === 0 ? exitCode.success : exitCode.negative
  return {
    ...manifestsResult(objects, (object) => stringify(object, yamlForm)),
    exitCode: errors.some(isUnreadable) ? exitCode.usage : code,
  }
}
