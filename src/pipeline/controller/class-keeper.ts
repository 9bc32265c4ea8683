/** Keeps the default GatewayClass in the cluster while this replica writes. */
import { ensureDefaultClass } from '../../deploy/default-class.ts'
import { defaultClassName } from '../../desired/shapes.ts'
import { type InstallOwners, type KubeClient, KubeError } from '../../kube/index.ts'
import type { ControllerSettings } from '../../settings/controller.ts'

export interface ClassKeeperOptions {
  readonly client: KubeClient
  readonly owners: InstallOwners
  readonly settings: Pick<ControllerSettings, 'classParameters'>
  readonly isWriting: () => boolean
  readonly say: (severity: 'warn', text: string) => void
}

const retryMs = 5_000

export class ClassKeeper {
  readonly #options: ClassKeeperOptions
  #running: Promise<void> = Promise.resolve()
  #timer: NodeJS.Timeout | undefined
  #isClosed = false
  #told = ''

  constructor(options: ClassKeeperOptions) {
    this.#options = options
    for (const name of Object.keys(options.settings.classParameters)) {
      if (name === defaultClassName) continue
      options.say('warn', `parameters for GatewayClass ${name}: only ${defaultClassName} is made`)
    }
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
      const done = await ensureDefaultClass(client, parameters, owners.clusterWide)
      this.#tell(
        done === 'applied' ? '' : `GatewayClass ${defaultClassName} is another controller's`,
      )
    } catch (error) {
      // The kind is not installed; its watch tells when it is.
      if (error instanceof KubeError && error.isNotFound) return
      this.#tell(`GatewayClass ${defaultClassName} cannot be made: ${String(error)}`)
      this.#timer = setTimeout(() => this.ensure(), retryMs)
    }
  }

  #tell(text: string): void {
    if (text !== '' && text !== this.#told) this.#options.say('warn', text)
    this.#told = text
  }
}
