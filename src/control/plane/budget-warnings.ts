/**
 * Sends the warnings of soft limits to the log, to Kubernetes and to webhooks. The replica that may write sends each
 * warning of the ledger that was not sent yet, and records that it was sent. If the process ends before the record
 * is written, the warning is sent again with the same id.
 */
import { setTimeout as after } from 'node:timers/promises'
import { budgetWarned } from '../../../events/index.ts'
import type { BudgetConfig, BudgetWebhook } from '../../ground/model/budgets.ts'
import type { Resource } from '../../ground/model/resources.ts'
import type { SecretLookup } from '../effects/call-backend.ts'
import { calledAddress } from '../effects/called-address.ts'
import { failureText } from '../effects/failure-text.ts'
import { budgetAmount } from '../ledger/balances.ts'
import type { BudgetWarning } from '../ledger/budget-state.ts'
import type { Ledger } from '../ledger/ledger.ts'

/** What the control plane provides for warnings. */
export interface WarningHost {
  /** Whether this replica may write the log now. */
  readonly isWriting: () => boolean
  /** The desired state, which has addresses and TLS settings of backends. */
  readonly resources: () => readonly Resource[]
  readonly secret: SecretLookup
  /** DNS domain of the cluster: the last part of the names of Services. */
  readonly clusterDomain: string
  /** Called with each warning and its text. */
  readonly onWarning?: (warning: BudgetWarning, text: string) => void
}

/** The part of a control plane that warnings use, once it is started. */
interface Plane {
  readonly fold: { resources(): readonly { readonly resource: Resource }[] }
  logEpoch(): number | undefined
  secretValue(digest: string): Uint8Array | undefined
}

/** Returns what warnings need of a control plane. */
export const warningHost = (plane: Plane, clusterDomain: string): WarningHost => ({
  isWriting: () => plane.logEpoch() !== undefined,
  resources: () => plane.fold.resources().map(({ resource }) => resource),
  secret: (digest) => plane.secretValue(digest),
  clusterDomain,
})

interface BudgetWarningsOptions extends WarningHost {
  readonly notify: (severity: 'warn', text: string) => void
  /** The budgets of the configuration, by their ids. */
  readonly budgets: () => ReadonlyMap<string, BudgetConfig>
}

/** Delays before a failed call of a webhook is repeated, in milliseconds. */
const retryDelays = [1_000, 3_000, 10_000, 30_000, 60_000] as const
/** Delay before it is tried again to record that a warning was passed on. */
const recordAgainMs = 1_000
const timeoutMs = 5_000
/** Maximum number of webhooks that are called at once. */
const maxCalls = 4
/** Longest value that texts have as a whole. */
const maxShown = 200

export class BudgetWarnings {
  /** Number of warnings that were passed on, by the name of the budget and the outcome. */
  readonly counts = new Map<string, { readonly labels: readonly string[]; count: number }>()
  readonly #options: BudgetWarningsOptions
  readonly #over = new AbortController()
  /** Warnings that this process has logged. */
  readonly #logged = new Set<string>()
  readonly #underWay = new Map<string, Promise<void>>()

  constructor(options: BudgetWarningsOptions) {
    this.#options = options
  }

  /** Passes on the warnings that are new. Called when the ledger has changed, and regularly. */
  update(ledger: Ledger): void {
    if (this.#over.signal.aborted || !this.#options.isWriting()) return
    const { warnings } = ledger.fold
    for (const id of this.#logged) if (!warnings.has(id)) this.#logged.delete(id)
    for (const warning of warnings.values()) {
      if (!this.#logged.has(warning.id)) this.#log(warning)
      if (this.#underWay.size >= maxCalls || this.#underWay.has(warning.id)) continue
      const passing = this.#passOn(warning, ledger).finally(() => {
        this.#underWay.delete(warning.id)
        this.update(ledger)
      })
      this.#underWay.set(warning.id, passing)
    }
  }

  async close(): Promise<void> {
    this.#over.abort()
    await Promise.all(this.#underWay.values())
  }

  #log(warning: BudgetWarning): void {
    this.#logged.add(warning.id)
    const text = warningText(warning)
    this.#options.notify('warn', text)
    this.#options.onWarning?.(warning, text)
  }

  async #passOn(warning: BudgetWarning, ledger: Ledger): Promise<void> {
    const { id, budget, percent } = warning
    const limits = this.#options.budgets().get(budget)?.softLimits
    const webhook = limits?.find((one) => one.percent === percent)?.webhook
    const result = webhook === undefined ? logged : await this.#call(webhook, warning)
    if (result === undefined) return
    await this.#record(ledger, { warning: id, budget, ...result })
    this.#count(warning.name, result.outcome)
  }

  /** Returns undefined if the process ends before the call has succeeded. */
  async #call(webhook: BudgetWebhook, warning: BudgetWarning): Promise<Result | undefined> {
    const { signal } = this.#over
    const what = `the webhook of budget ${warning.name} for ${warning.percent} % failed`
    let reason = ''
    for (const delayMs of [0, ...retryDelays]) {
      await after(delayMs, undefined, { signal, ref: false }).catch(() => undefined)
      if (signal.aborted) return undefined
      try {
        await this.#post(webhook, warning)
        return { outcome: 'delivered' }
      } catch (error) {
        reason = failureText(error)
      }
      // Once, and not for each repetition.
      if (delayMs === 0 && !signal.aborted) {
        this.#options.notify('warn', `${what}: ${reason}. It is called again within two minutes.`)
      }
    }
    if (signal.aborted) return undefined
    this.#options.notify('warn', `${what}: ${reason}. This warning is not sent again.`)
    return { outcome: 'failed', reason }
  }

  async #post({ path, ...backend }: BudgetWebhook, warning: BudgetWarning): Promise<void> {
    const { resources, secret, clusterDomain } = this.#options
    // Few gateways have a webhook, and the HTTP client takes memory.
    const { callBackend } = await import('../effects/call-backend.ts')
    const address = calledAddress(backend, resources(), clusterDomain, Math.random)
    const headers = { 'content-type': 'application/cloudevents+json; charset=utf-8' }
    const body = JSON.stringify(cloudEvent(warning))
    const request = { method: 'POST', path, headers, body, timeoutMs, maxBytes: 0 } as const
    const { status } = await callBackend(address, request, secret, this.#over.signal)
    if (status < 200 || status > 299) throw new Error(`the server answers ${status}`)
  }

  async #record(ledger: Ledger, data: Parameters<Ledger['notified']>[0]): Promise<void> {
    const { signal } = this.#over
    while (!signal.aborted && ledger.fold.warnings.has(data.warning)) {
      const isDone = await ledger.notified(data).then(
        () => true,
        () => false,
      )
      if (isDone) return
      await after(recordAgainMs, undefined, { signal, ref: false }).catch(() => undefined)
    }
  }

  #count(budget: string, outcome: string): void {
    const key = `${budget} ${outcome}`
    const known = this.counts.get(key) ?? { labels: [budget, outcome], count: 0 }
    known.count++
    this.counts.set(key, known)
  }
}

type Result = Pick<Parameters<Ledger['notified']>[0], 'outcome' | 'reason'>

const logged: Result = { outcome: 'logged' }

function warningText({ name, value, percent, unit, spent, limit, window }: BudgetWarning): string {
  const shown = value.length > maxShown ? `${value.slice(0, maxShown).toWellFormed()}…` : value
  const of = value === '' ? '' : ` for ${JSON.stringify(shown)}`
  const amounts = `${budgetAmount(unit, spent)} of ${budgetAmount(unit, limit)} ${unit}`
  return `budget ${name}${of} has reached ${percent} %: ${amounts} of this ${window.unit.toLowerCase()} are spent`
}

/** What webhooks get (CloudEvents 1.0). Chat services show `text`. Amounts are decimals in the unit of the limit. */
function cloudEvent(warning: BudgetWarning): object {
  const { id, name, value, percent, unit, spent, limit, time, endsAt } = warning
  const remaining = limit > spent ? limit - spent : 0n
  return {
    specversion: '1.0',
    id,
    source: '/sluice/ledger',
    type: budgetWarned.type,
    subject: name,
    time,
    datacontenttype: 'application/json',
    text: warningText(warning),
    data: {
      budget: name,
      value,
      percent,
      unit,
      spent: budgetAmount(unit, spent),
      limit: budgetAmount(unit, limit),
      remaining: budgetAmount(unit, remaining),
      ...(endsAt !== undefined && { resetsAt: new Date(endsAt).toISOString() }),
    },
  }
}
