/** The settings for calls, bound to what they need. The same for all requests that they apply to. */
import { ExpiringMap } from '../../../../ground/base/bounded-map.ts'
import type { Callouts, SecretValues } from '../../../../ground/exchange/exchange.ts'
import type { PolicyHost, RateBucket } from '../../../../ground/exchange/rate-limits.ts'
import { GlobalLimits } from '../../../policies/rate-limit/global.ts'
import { LocalLimits } from '../../../policies/rate-limit/local.ts'
import { Expression } from '../../../variables/index.ts'
import { bindGuards, isAudit, isRegex, type PlacedGuard } from '../../ai/policy/bind-guard.ts'
import type { CallsConfig } from './calls-config.ts'
import { Processor } from './processor.ts'
import { RepeatedCalls } from './repeated-calls.ts'
import { ToolScan } from './tool-scan.ts'

/** A definition after the guards. */
export interface GuardedDefinition {
  /** Undefined if clients must not get it. */
  readonly text: string | undefined
  readonly findings: readonly string[]
  /** Whether a guard has failed, so that the definition must be judged again. */
  readonly hasFailed: boolean
}

const maxDefinitions = 4_096
/** How long a verdict about a definition is reused. */
const verdictMs = 300_000

export class CallPolicy {
  readonly config: CallsConfig
  readonly requestGuards: readonly PlacedGuard[]
  readonly responseGuards: readonly PlacedGuard[]
  readonly processors: readonly Processor[]
  /** Equal for policies with the same processors. */
  readonly processorKey: string
  readonly scan: ToolScan | undefined
  readonly local: LocalLimits | undefined
  readonly global: GlobalLimits | undefined
  /** Counts equal calls by their digests. */
  readonly repeats: RepeatedCalls | undefined
  /** Counts approvals by their ids, so that each is used once. */
  readonly approvals: RateBucket | undefined
  readonly needsApproval: Expression | undefined
  readonly callouts: Callouts
  /** Verdicts of guards by the digest of the definition's JSON. They expire, because a service may change its rules. */
  readonly definitions = new ExpiringMap<string, GuardedDefinition>(maxDefinitions, verdictMs)

  /** @throws Error if a secret has not arrived. */
  constructor(config: CallsConfig, callouts: Callouts, secrets: SecretValues, host: PolicyHost) {
    const { limits, repeats, approval, toolGuard } = config
    const services = { callouts, secrets, host }
    this.config = config
    this.callouts = callouts
    this.requestGuards = bindGuards(config.requestGuards, 'Request', services)
    this.responseGuards = bindGuards(config.responseGuards, 'Response', services)
    this.processors = (config.processors ?? []).map((one) => new Processor(one, callouts))
    this.processorKey = JSON.stringify(config.processors)
    this.scan = toolGuard && new ToolScan(toolGuard)
    this.local = limits && new LocalLimits(limits.local, host)
    this.global = limits?.global && new GlobalLimits(limits.global, callouts)
    this.repeats = repeats && new RepeatedCalls(repeats, host)
    this.approvals =
      approval && host.bucket('approvals', { rate: 1, unit: 'Hours', burst: 0, isKeyed: true })
    this.needsApproval = approval?.when === undefined ? undefined : new Expression(approval.when)
  }

  /** Whether responses may not reach clients as they are, so that clients cannot resume them. */
  get changesResults(): boolean {
    return (
      !this.responseGuards.every(isAudit) ||
      this.config.maxResultBytes !== undefined ||
      this.processors.some(({ checksResponses }) => checksResponses)
    )
  }

  /** Whether log messages and progress, which cannot wait for a service, are withheld. */
  get withholdsProgress(): boolean {
    return (
      this.responseGuards.some((placed) => !isAudit(placed) && !isRegex(placed.guard)) ||
      this.processors.some((one) => one.checks('tools/call', 'Response'))
    )
  }

  hasProcessorsFor(method: string): boolean {
    for (const one of this.processors) {
      if (one.checks(method, 'Request') || one.checks(method, 'Response')) return true
    }
    return false
  }

  dispose(): void {
    for (const { guard } of [...this.requestGuards, ...this.responseGuards]) guard.dispose()
    this.scan?.dispose()
  }
}
