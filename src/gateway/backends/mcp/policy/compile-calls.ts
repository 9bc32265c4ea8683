/** Compiles the settings for calls. */
import { checkRegex } from '../../../../engines/core/regex.ts'
import { parseDurationMs } from '../../../../ground/base/duration.ts'
import { calledBackend, type References } from '../../../../ground/model/references.ts'
import type { SecretRef } from '../../../../ground/model/resources.ts'
import type { Infer } from '../../../../ground/schema/field.ts'
import type { PolicyProblem } from '../../../policies/define.ts'
import { compileLimits, type RateLimitSpec } from '../../../policies/rate-limit/index.ts'
import { GuardCompiler } from '../../ai/policy/guard-compiler.ts'
import type { BackendAiSpec } from '../../ai/policy/schema.ts'
import type { ApprovalConfig, CallsConfig, ToolGuardConfig } from './calls-config.ts'
import type { approval, callLimits, toolGuard } from './calls-schema.ts'
import { compileGuardrails } from './compile-guardrails.ts'
import type { GuardrailsSpec } from './guardrails-schema.ts'

interface CallsSpec {
  readonly promptGuard?: BackendAiSpec['promptGuard']
  readonly guardrails?: GuardrailsSpec | undefined
  readonly toolGuard?: Infer<typeof toolGuard> | undefined
  readonly rateLimit?: RateLimitSpec | undefined
  readonly calls?: Infer<typeof callLimits> | undefined
  readonly approval?: Infer<typeof approval> | undefined
}

interface CompiledCalls {
  /** Undefined if a part cannot be enforced, so that the backend refuses all requests. */
  readonly config: CallsConfig | undefined
  readonly problems: readonly PolicyProblem[]
  readonly secrets: readonly SecretRef[]
}

const defaultTimeoutMs = 60_000
const defaultBreakerMs = 30_000

/** Returns undefined if nothing is set. */
export function compileCalls(spec: CallsSpec, references: References): CompiledCalls | undefined {
  const { promptGuard, guardrails, toolGuard, rateLimit, calls, approval } = spec
  const isSet = [promptGuard, guardrails, toolGuard, rateLimit, calls, approval].some(
    (one) => one !== undefined,
  )
  if (!isSet) return undefined
  const guards = new GuardCompiler(references, 'mcp')
  const problems: PolicyProblem[] = []
  const limits = rateLimit && compileRateLimit(rateLimit, references, problems)
  const approved = approval && compileApproval(approval, references, problems)
  const processors = guardrails && compileGuardrails(guardrails, references, problems)
  const compiled = guards.compileAll(promptGuard ?? {})
  const config: CallsConfig = {
    ...compiled,
    ...(calls?.recordArguments === true && recording(compiled, problems)),
    ...(processors && { processors }),
    ...(toolGuard && { toolGuard: compileToolGuard(toolGuard, problems) }),
    ...(limits && { limits }),
    ...(approved && { approval: approved }),
    ...limitsOf(calls),
  }
  const all = [...problems, ...guards.problems]
  const isWhole = all.every(({ partial }) => partial === true)
  return { config: isWhole ? config : undefined, problems: all, secrets: guards.secrets }
}

/** Arguments may have anything in them, so they are recorded only if something masks them. */
function recording(
  { requestGuards }: Pick<CallsConfig, 'requestGuards'>,
  problems: PolicyProblem[],
): Pick<CallsConfig, 'recordsArguments'> {
  if (requestGuards.some(({ type }) => type === 'regex')) return { recordsArguments: true }
  const message = 'promptGuard.request has no regex guard that masks arguments: none are recorded'
  problems.push({ path: 'calls.recordArguments', message, partial: true })
  return {}
}

function limitsOf(calls: CallsSpec['calls']) {
  const { maxResultSize, largeResults, timeout, repeats, circuitBreaker } = calls ?? {}
  const timeoutMs = parseDurationMs(timeout)
  return {
    truncates: largeResults !== 'Refuse',
    ...(maxResultSize !== undefined && { maxResultBytes: maxResultSize }),
    ...(timeoutMs !== undefined && { timeoutMs }),
    ...(repeats && { repeats }),
    ...(circuitBreaker && {
      breaker: {
        consecutiveFailures: circuitBreaker.consecutiveFailures,
        durationMs: parseDurationMs(circuitBreaker.duration) ?? defaultBreakerMs,
      },
    }),
  }
}

function compileToolGuard(
  { matches, hiddenCharacters = true, action = 'Report' }: NonNullable<CallsSpec['toolGuard']>,
  problems: PolicyProblem[],
): ToolGuardConfig {
  for (const [at, pattern] of (matches ?? []).entries()) {
    const checked = checkRegex(pattern)
    if (!checked.ok) problems.push({ path: `toolGuard.matches[${at}]`, message: checked.message })
  }
  return { hiddenCharacters, hides: action === 'Hide', ...(matches && { matches }) }
}

function compileRateLimit(
  spec: RateLimitSpec,
  references: References,
  problems: PolicyProblem[],
): CallsConfig['limits'] {
  const compiled = compileLimits(spec, references)
  const at = (path: string) => `rateLimit.${path}`
  problems.push(...compiled.problems.map((one) => ({ ...one, path: at(one.path) })))
  const tokens = 'calls of tools have no tokens: limit requests'
  for (const [index, { tokens: count }] of (spec.local ?? []).entries()) {
    if (count !== undefined) problems.push({ path: at(`local[${index}].tokens`), message: tokens })
  }
  for (const [index, { unit }] of (spec.global?.descriptors ?? []).entries()) {
    if (unit === 'Tokens') {
      problems.push({ path: at(`global.descriptors[${index}].unit`), message: tokens })
    }
  }
  return compiled.config
}

function compileApproval(
  { annotated, tools = [], when, webhook, timeout }: NonNullable<CallsSpec['approval']>,
  references: References,
  problems: PolicyProblem[],
): ApprovalConfig {
  const target = webhook && calledBackend(references, webhook)
  if (typeof target === 'string') problems.push({ path: 'approval.webhook', message: target })
  return {
    tools,
    timeoutMs: parseDurationMs(timeout) ?? defaultTimeoutMs,
    ...(annotated && { annotated }),
    ...(when !== undefined && { when }),
    ...(typeof target === 'object' && { webhook: target }),
  }
}
