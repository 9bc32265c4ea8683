import { checkRegex, compileMask } from '../../../core/index.ts'
import type { References } from '../../../model/references.ts'
import type { SecretRef } from '../../../model/resources.ts'
import { compile as compileAuth } from '../../../policies/backend-simple/auth/compile.ts'
import { compile as compileHttp } from '../../../policies/backend-simple/http/compile.ts'
import type { BackendSimpleSpec } from '../../../policies/backend-simple/schema.ts'
import { compile as compileTcp } from '../../../policies/backend-simple/tcp/compile.ts'
import { compile as compileTls } from '../../../policies/backend-simple/tls/compile.ts'
import type { Compiled, PolicyProblem } from '../../../policies/define.ts'
import { rulesOf } from '../guards/regex-guard.ts'
import type { BackendAiConfig, GuardConfig, HeaderForward, Refusal } from './config.ts'
import type { PromptGuardSpec } from './guards.ts'
import type { BackendAiSpec } from './schema.ts'

type RequestGuardSpec = NonNullable<PromptGuardSpec['request']>[number]
type ResponseGuardSpec = NonNullable<PromptGuardSpec['response']>[number]
type RegexSpec = NonNullable<RequestGuardSpec['regex']>
type WebhookSpec = NonNullable<RequestGuardSpec['webhook']>
type ModerationSpec = NonNullable<RequestGuardSpec['vendorAModeration']>

const refusedStatus = 403
const refusedRequest = 'The request was rejected due to inappropriate content'
const refusedResponse = 'The response was rejected due to inappropriate content'

/** What compiling finds on the way. */
class Findings {
  readonly problems: PolicyProblem[] = []
  readonly secrets: SecretRef[] = []
  readonly references: References

  constructor(references: References) {
    this.references = references
  }

  /** The guard cannot be enforced. */
  refuse(path: string, message: string): void {
    this.problems.push({ path, message })
  }

  /** Everything is enforced; there is something to know. */
  remark(path: string, message: string): void {
    this.problems.push({ path, message, partial: true })
  }
}

/** `backend.ai`. A guard that cannot be enforced closes the backend: nothing passes unguarded. */
export function compile(spec: BackendAiSpec, references: References): Compiled<BackendAiConfig> {
  const findings = new Findings(references)
  const { prompt, promptGuard, defaults, overrides, modelAliases, promptCaching, routes } = spec
  const requestGuards = (promptGuard?.request ?? []).map((guard, at) =>
    requestGuard(guard, `promptGuard.request[${at}]`, findings),
  )
  const responseGuards = (promptGuard?.response ?? []).map((guard, at) =>
    responseGuard(guard, `promptGuard.response[${at}]`, findings),
  )
  const caching = promptCaching && {
    cacheSystem: promptCaching.cacheSystem ?? true,
    cacheMessages: promptCaching.cacheMessages ?? true,
    cacheTools: promptCaching.cacheTools ?? false,
    minTokens: promptCaching.minTokens ?? 1024,
  }
  if (promptGuard !== undefined) remarkUnread(routes ?? {}, findings)
  const config: BackendAiConfig = {
    requestGuards: requestGuards.flatMap((guard) => guard ?? []),
    responseGuards: responseGuards.flatMap((guard) => guard ?? []),
    ...(prompt && { prompt }),
    ...(defaults && { defaults }),
    ...(overrides && { overrides }),
    ...(modelAliases && { modelAliases }),
    ...(caching && { caching }),
    ...(routes && { routes }),
  }
  return { config, problems: findings.problems, secrets: findings.secrets }
}

/** Nothing is read of these, so there is nothing that guards could look at. */
const unread = new Set(['Passthrough', 'Realtime'])

function remarkUnread(routes: NonNullable<BackendAiSpec['routes']>, findings: Findings): void {
  for (const [ending, type] of Object.entries(routes)) {
    if (!unread.has(type)) continue
    findings.remark(
      `routes[${JSON.stringify(ending)}]`,
      `guards do not see requests of type ${type}`,
    )
  }
}

function refusalOf(
  response: RequestGuardSpec['response'] | ResponseGuardSpec['response'],
  message: string,
): Refusal {
  return {
    status: response?.statusCode ?? refusedStatus,
    message: response?.message ?? message,
  }
}

function requestGuard(
  { response, regex, webhook, vendorAModeration }: RequestGuardSpec,
  path: string,
  findings: Findings,
): GuardConfig | undefined {
  const refusal = refusalOf(response, refusedRequest)
  if (regex !== undefined) return regexGuard(regex, refusal, `${path}.regex`, findings)
  if (webhook !== undefined) return webhookGuard(webhook, refusal, `${path}.webhook`, findings)
  const inside = `${path}.vendorAModeration`
  return vendorAModeration && moderationGuard(vendorAModeration, refusal, inside, findings)
}

function responseGuard(
  { response, regex, webhook }: ResponseGuardSpec,
  path: string,
  findings: Findings,
): GuardConfig | undefined {
  const refusal = refusalOf(response, refusedResponse)
  if (webhook !== undefined) return webhookGuard(webhook, refusal, `${path}.webhook`, findings)
  if (regex === undefined) return undefined
  if (regex.action === 'Reject') {
    findings.remark(`${path}.regex.action`, 'responses are masked, whatever the action is')
  }
  return regexGuard({ ...regex, action: 'Mask' }, refusal, `${path}.regex`, findings, true)
}

function regexGuard(
  { matches = [], builtins = [], action = 'Mask' }: RegexSpec,
  refusal: Refusal,
  path: string,
  findings: Findings,
  isStreamed = false,
): GuardConfig {
  const config = { type: 'regex', refusal, matches, builtins, action } as const
  const rules = rulesOf(config)
  for (const [at, pattern] of matches.entries()) {
    const checked = checkRegex(pattern)
    if (!checked.ok) findings.refuse(`${path}.matches[${at}]`, checked.message)
    else if (isStreamed && isUnbounded(pattern)) {
      const message =
        'what it matches has no largest length: streamed responses may be held back, and those that stay undecided for too long are cut off'
      findings.remark(`${path}.matches[${at}]`, message)
    }
  }
  if (rules.length === 0)
    findings.remark(path, 'has neither matches nor builtins: it finds nothing')
  return config
}

function isUnbounded(pattern: string): boolean {
  const outcome = compileMask([{ pattern, replacement: '' }])
  if (!outcome.ok) return false
  const { holdBytes } = outcome.mask
  outcome.mask.dispose()
  return holdBytes === undefined
}

function webhookGuard(
  { backendRef, forwardHeaderMatches = [] }: WebhookSpec,
  refusal: Refusal,
  path: string,
  findings: Findings,
): GuardConfig | undefined {
  const forward = forwardHeaderMatches.map(({ name, type = 'Exact', value }, at): HeaderForward => {
    const checked = type === 'RegularExpression' ? checkRegex(value) : undefined
    if (checked?.ok === false) {
      findings.refuse(`${path}.forwardHeaderMatches[${at}].value`, checked.message)
    }
    return { name: name.toLowerCase(), type, value }
  })
  const target = findings.references.backend(backendRef)
  if (typeof target === 'string') {
    findings.refuse(`${path}.backendRef`, target)
    return undefined
  }
  return { type: 'webhook', refusal, target, forward }
}

function moderationGuard(
  { model, policies = {} }: ModerationSpec,
  refusal: Refusal,
  path: string,
  findings: Findings,
): GuardConfig {
  const compiled = Object.entries(compileSimple(policies, findings.references)).flatMap(
    ([field, { config, problems, secrets = [] }]) => {
      for (const problem of problems) {
        const at = problem.path === '' ? field : `${field}.${problem.path}`
        findings.refuse(`${path}.policies.${at}`, problem.message)
      }
      findings.secrets.push(...secrets)
      return config === undefined ? [] : [{ field, config }]
    },
  )
  return { type: 'moderation', refusal, policies: compiled, ...(model !== undefined && { model }) }
}

function compileSimple(
  { tcp, tls, http, auth }: BackendSimpleSpec,
  references: References,
): Record<string, Compiled<unknown>> {
  return {
    ...(tcp && { tcp: compileTcp(tcp) }),
    ...(tls && { tls: compileTls(tls, references) }),
    ...(http && { http: compileHttp(http) }),
    ...(auth && { auth: compileAuth(auth, references) }),
  }
}
