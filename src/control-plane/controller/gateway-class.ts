/**
 * Keeps the default GatewayClass in the cluster while this replica writes. Deployments follow its
 * parameters, which the settings of a replica may change: nothing is deployed before the fold knows
 * the class as configured, or it would be deployed differently a moment later.
 */

import { defaultClassName } from '../../api/names.ts'
import { onlyChanges } from '../../base/notices.ts'
import { type ClassVersion, ensureDefaultClass } from '../../deploy/default-class.ts'
import { type InstallOwners, type KubeClient, KubeError } from '../../kube/index.ts'
import type { ControllerSettings } from '../../settings/controller.ts'
import type { Severity } from '../parts.ts'

interface GatewayClassReconcilerOptions {
  readonly client: KubeClient
  readonly owners: InstallOwners
  readonly notify: (severity: Severity, text: string) => void
  readonly settings: Pick<ControllerSettings, 'classParameters'>
  readonly isWriting: () => boolean
  /** The class as the fold knows it. */
  readonly known: () => ClassVersion | undefined
  /** `isInForce` holds again. */
  readonly onInForce: () => void
}

const retryMs = 5_000

export class GatewayClassReconciler {
  readonly #options: GatewayClassReconcilerOptions
  #running: Promise<void> = Promise.resolve()
  #timer: NodeJS.Timeout | undefined
  #isClosed = false
  readonly #notify: (text: string) => void
  /** The version that the fold is to know; `unknown` until the class was created. */
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

  /** Does the fold know the class as configured, or will it never? */
  get isInForce(): boolean {
    return this.#awaited === undefined
  }

  /** This replica writes from now on: its settings apply. */
  lead(): void {
    this.#awaited = 'unknown'
    this.ensure()
  }

  /** The fold may know more than before. */
  folded(): void {
    if (this.#awaited === undefined || this.#awaited === 'unknown') return
    const known = this.#options.known()
    if (known?.uid !== this.#awaited.uid || known.generation < this.#awaited.generation) return
    this.#stopWaiting()
  }

  /** Creates the class if it is missing. */
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
      // A refusal stays one.
      if (!(error instanceof KubeError && error.isPassing)) this.#stopWaiting()
      // The kind is not installed; its watch tells when it is.
      if (error instanceof KubeError && error.isNotFound) return
      this.#notify(`GatewayClass ${defaultClassName} cannot be made: ${String(error)}`)
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
