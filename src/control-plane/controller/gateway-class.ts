/**
 * Keeps the default GatewayClass in the cluster while this replica writes. What is deployed goes by
 * its parameters, which the settings of a replica may change: until the fold knows the class as it is
 * to be, nothing is deployed that would be deployed otherwise a moment later.
 */
import { defaultClassName } from '../../api/names.ts'
import { type ClassVersion, ensureDefaultClass } from '../../deploy/default-class.ts'
import { type InstallOwners, type KubeClient, KubeError } from '../../kube/index.ts'
import type { ControllerSettings } from '../../settings/controller.ts'

export interface ClassKeeperOptions {
  readonly client: KubeClient
  readonly owners: InstallOwners
  readonly settings: Pick<ControllerSettings, 'classParameters'>
  readonly isWriting: () => boolean
  /** The class as the fold knows it. */
  readonly known: () => ClassVersion | undefined
  /** `isInForce` holds again. */
  readonly onInForce: () => void
  readonly say: (severity: 'warn', text: string) => void
}

const retryMs = 5_000

export class ClassKeeper {
  readonly #options: ClassKeeperOptions
  #running: Promise<void> = Promise.resolve()
  #timer: NodeJS.Timeout | undefined
  #isClosed = false
  #told = ''
  /** What the fold is to know; `unknown` until the class was made. */
  #awaited: ClassVersion | 'unknown' | undefined

  constructor(options: ClassKeeperOptions) {
    this.#options = options
    for (const name of Object.keys(options.settings.classParameters)) {
      if (name === defaultClassName) continue
      options.say('warn', `parameters for GatewayClass ${name}: only ${defaultClassName} is made`)
    }
  }

  /** Does the fold know the class as it is to be, or will it never? */
  get isInForce(): boolean {
    return this.#awaited === undefined
  }

  /** This replica writes from now on: its settings count. */
  begin(): void {
    this.#awaited = 'unknown'
    this.ensure()
  }

  /** The fold may know more than before. */
  look(): void {
    if (this.#awaited === undefined || this.#awaited === 'unknown') return
    const known = this.#options.known()
    if (known?.uid !== this.#awaited.uid || known.generation < this.#awaited.generation) return
    this.#waitNoMore()
  }

  /** It may be missing: looks, and makes it. */
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
      this.#tell(made ? '' : `GatewayClass ${defaultClassName} is another controller's`)
      this.#await(made)
    } catch (error) {
      // What is forbidden stays so.
      if (!(error instanceof KubeError && error.isPassing)) this.#waitNoMore()
      // The kind is not installed; its watch tells when it is.
      if (error instanceof KubeError && error.isNotFound) return
      this.#tell(`GatewayClass ${defaultClassName} cannot be made: ${String(error)}`)
      this.#timer = setTimeout(() => this.ensure(), retryMs)
    }
  }

  #await(made: ClassVersion | undefined): void {
    if (this.#awaited === undefined) return
    if (made === undefined) {
      this.#waitNoMore()
      return
    }
    this.#awaited = made
    this.look()
  }

  #waitNoMore(): void {
    if (this.#awaited === undefined) return
    this.#awaited = undefined
    this.#options.onInForce()
  }

  #tell(text: string): void {
    if (text !== '' && text !== this.#told) this.#options.say('warn', text)
    this.#told = text
  }
}
