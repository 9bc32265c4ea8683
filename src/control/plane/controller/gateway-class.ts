/**
 * Keeps the default GatewayClass in the cluster while this replica writes. Deployments use the parameters of
 * the class, which may differ in the settings of the previous leader, so they wait until the fold has the
 * class as configured here.
 */

import {
  controllerName,
  defaultClassName,
  gatewayGroup,
  ownGroup,
} from '../../../ground/model/api-names.ts'
import type { ControllerSettings } from '../../../ground/settings/controller.ts'
import {
  type InstallOwners,
  type KubeClient,
  KubeError,
  type OwnerReference,
  objectPath,
  ownedBy,
} from '../../kube/index.ts'
import { onlyChanges } from '../../status/only-changes.ts'
import type { LogLevel } from '../parts.ts'

/** A version of the class: its uid, and how often its spec was changed. */
interface ClassVersion {
  readonly uid: string
  readonly generation: number
}

interface GatewayClassReconcilerOptions {
  readonly client: KubeClient
  readonly owners: InstallOwners
  readonly notify: (severity: LogLevel, text: string) => void
  readonly settings: Pick<ControllerSettings, 'classParameters'>
  readonly isWriting: () => boolean
  /** The version of the class in the fold. */
  readonly known: () => ClassVersion | undefined
  /** Called when `isInForce` becomes true. */
  readonly onInForce: () => void
}

const retryMs = 5_000

export class GatewayClassReconciler {
  readonly #options: GatewayClassReconcilerOptions
  #running: Promise<void> = Promise.resolve()
  #timer: NodeJS.Timeout | undefined
  #isClosed = false
  readonly #notify: (text: string) => void
  /** The version that the fold must reach; `unknown` until the class is written. */
  #awaited: ClassVersion | 'unknown' | undefined

  constructor(options: GatewayClassReconcilerOptions) {
    this.#options = options
    this.#notify = onlyChanges((text) => options.notify('warn', text))
    for (const name of Object.keys(options.settings.classParameters)) {
      if (name === defaultClassName) continue
      options.notify(
        'warn',
        `parameters for GatewayClass ${name} are ignored: this controller only creates ${defaultClassName}`,
      )
    }
  }

  /** Whether deployments may go ahead: the fold has the class as configured, or never will. */
  get isInForce(): boolean {
    return this.#awaited === undefined
  }

  /** Called when this replica begins to write, so that its settings apply. */
  lead(): void {
    this.#awaited = 'unknown'
    this.ensure()
  }

  /** Called after the fold has applied an event. */
  folded(): void {
    if (this.#awaited === undefined || this.#awaited === 'unknown') return
    const known = this.#options.known()
    if (known?.uid !== this.#awaited.uid || known.generation < this.#awaited.generation) return
    this.#stopWaiting()
  }

  /** Creates the class if it is missing, or updates its parameters. */
  ensure(): void {
    clearTimeout(this.#timer)
    this.#running = this.#running.then(() => this.#ensure())
  }

  async close(): Promise<void> {
    this.#isClosed = true
    clearTimeout(this.#timer)
    await this.#running
  }

  async #ensure(): Promise<void> {
    const { client, owners, settings, isWriting } = this.#options
    if (this.#isClosed || !isWriting()) return
    try {
      const parameters = settings.classParameters[defaultClassName]
      const made = await ensureDefaultClass(client, parameters, owners.clusterWide)
      this.#notify(made ? '' : `GatewayClass ${defaultClassName} is another controller's`)
      this.#await(made)
    } catch (error) {
      // A permanent error: the class will not come.
      if (!(error instanceof KubeError && error.isTransient)) this.#stopWaiting()
      // The kind is not installed. `ensure` is called again when its watch works.
      if (error instanceof KubeError && error.isNotFound) return
      this.#notify(`GatewayClass ${defaultClassName} cannot be created: ${String(error)}`)
      this.#timer = setTimeout(() => this.ensure(), retryMs)
    }
  }

  #await(made: ClassVersion | undefined): void {
    if (this.#awaited === undefined) return
    if (made === undefined) {
      this.#stopWaiting()
      return
    }
    this.#awaited = made
    this.folded()
  }

  #stopWaiting(): void {
    if (this.#awaited === undefined) return
    this.#awaited = undefined
    this.#options.onInForce()
  }
}

/**
 * Creates the default class, or updates its parameters. Resolves with the resulting version, or with
 * undefined if another controller owns the class of this name, which is left alone.
 * @throws KubeError if the API server refuses it; 404 if the kind is not installed
 */
async function ensureDefaultClass(
  client: KubeClient,
  parameters: ControllerSettings['classParameters'][string] | undefined,
  installation?: OwnerReference,
): Promise<ClassVersion | undefined> {
  const kind = { group: gatewayGroup, version: 'v1', plural: 'gatewayclasses' }
  const path = objectPath(kind, '', defaultClassName)
  const owner = await ownerOf(client, path)
  if (owner !== undefined && owner !== controllerName) return undefined
  const {
    group = ownGroup,
    kind: parametersKind = 'GatewayParameters',
    ...place
  } = parameters ?? {}
  const { metadata } = await client.apply(path, {
    apiVersion: `${gatewayGroup}/v1`,
    kind: 'GatewayClass',
    metadata: { name: defaultClassName, ...ownedBy(installation) },
    spec: {
      controllerName,
      ...(parameters && { parametersRef: { group, kind: parametersKind, ...place } }),
    },
  })
  return { uid: metadata?.uid ?? '', generation: metadata?.generation ?? 0 }
}

async function ownerOf(client: KubeClient, path: string): Promise<string | undefined> {
  try {
    const { spec } = await client.get(path)
    return (spec as { controllerName?: string } | undefined)?.controllerName
  } catch (error) {
    if (error instanceof KubeError && error.isNotFound) return undefined
    throw error
  }
}
