import { checkRegex } from '../../../../engines/core/regex.ts'
import { compileMask } from '../../../../engines/core/regex-mask.ts'
import type { References } from '../../../../ground/model/references.ts'
import type { SecretRef } from '../../../../ground/model/resources.ts'
import { compile as compileAuth } from '../../../policies/backend-simple/auth/index.ts'
import { compile as compileHttp } from '../../../policies/backend-simple/http/index.ts'
import { compile as compileTcp } from '../../../policies/backend-simple/tcp/index.ts'
import { compile as compileTls } from '../../../policies/backend-simple/tls/index.ts'
import { type Compiled, definePolicy, type PolicyProblem } from '../../../policies/define.ts'
import type { BackendAiConfig, GuardConfig } from './config.ts'
import { type BackendAiSpec, backendAiSchema } from './schema.ts'

/** A request guard; response guards have the same fields, except for moderation. */
type GuardSpec = NonNullable<NonNullable<BackendAiSpec['promptGuard']>['request']>[number]
type RegexSpec = NonNullable<GuardSpec['regex']>
type WebhookSpec = NonNullable<GuardSpec['webhook']>
type ModerationSpec = NonNullable<GuardSpec['vendorAModeration']>

/** Guards cannot see requests of these types, because the gateway does not read them. */
const unguardedTypes = new Set(['Passthrough', 'Realtime'])

/** If a guard cannot be enforced, the backend rejects all requests, so that nothing passes unguarded. */
function compile(spec: BackendAiSpec, references: References): Compiled<BackendAiConfig> {
  const { prompt, promptGuard, defaults, overrides, modelAliases, promptCaching, routes } = spec
  const guards = new GuardCompiler(references)
  const { request = [], response = [] } = promptGuard ?? {}
  const caching = promptCaching && {
    cacheSystem: promptCaching.cacheSystem ?? true,
    cacheMessages: promptCaching.cacheMessages ?? true,
    cacheTools: promptCaching.cacheTools ?? false,
    minTokens: promptCaching.minTokens ?? 1024,
  }
  const config: BackendAiConfig = {
    requestGuards: request.flatMap((guard, at) => guards.compile(guard, 'request', at)),
    responseGuards: response.flatMap((guard, at) => guards.compile(guard, 'response', at)),
    ...(prompt && { prompt }),
    ...(defaults && { defaults }),
    ...(overrides && { overrides }),
    ...(modelAliases && { modelAliases }),
    ...(caching && { caching }),
    ...(routes && { routes }),
  }
  for (const [ending, type] of Object.entries(routes ?? {})) {
    if (promptGuard === undefined || !unguardedTypes.has(type)) continue
    const path = `routes[${JSON.stringify(ending)}]`
    guards.remark(path, `guards do not see requests of type ${type}`)
  }
  return { config, problems: guards.problems, secrets: guards.secrets }
}

class GuardCompiler {
  readonly problems: PolicyProblem[] = []
  readonly secrets: SecretRef[] = []
  readonly #references: References

  constructor(references: References) {
    this.#references = references
  }

  /** Reports a problem that does not keep the policy from being enforced. */
  remark(path: string, message: string): void {
    this.problems.push({ path, message, partial: true })
  }

  /** Reports a problem that keeps a guard from being enforced. */
  #refuse(path: string, message: string): void {
    this.problems.push({ path, message })
  }

  /** Compiles the guard at index `at` of a list; returns nothing if its service does not exist. */
  compile(guard: GuardSpec, list: 'request' | 'response', at: number): GuardConfig[] {
    const { response, regex, webhook, vendorAModeration } = guard
    const path = `promptGuard.${list}[${at}]`
    const message = `The ${list} was rejected due to inappropriate content`
    const refusal = {
      status: response?.statusCode ?? 403,
      message: response?.message ?? message,
    }
    const compiled =
      (regex && this.#regex(regex, `${path}.regex`, list === 'response')) ??
      (webhook && this.#webhook(webhook, `${path}.webhook`)) ??
      (vendorAModeration && this.#moderation(vendorAModeration, `${path}.vendorAModeration`))
    return compiled === undefined ? [] : [{ ...compiled, refusal }]
  }

  /** Compiles a regex guard. Matches in responses are always masked, because responses may be streamed. */
  #regex(spec: RegexSpec, path: string, isResponse: boolean) {
    const { matches = [], builtins = [], action = 'Mask' } = spec
    if (isResponse && action === 'Reject') {
      this.remark(`${path}.action`, 'responses are masked, whatever the action is')
    }
    for (const [at, pattern] of matches.entries()) {
      const checked = checkRegex(pattern)
      if (!checked.ok) this.#refuse(`${path}.matches[${at}]`, checked.message)
      else if (isResponse && isUnbounded(pattern)) {
        const message =
          'what it matches has no largest length: streamed responses may be held back, and those that stay undecided for too long are cut off'
        this.remark(`${path}.matches[${at}]`, message)
      }
    }
    if (matches.length + builtins.length === 0) {
      this.remark(path, 'has neither matches nor builtins: it finds nothing')
    }
    return { type: 'regex', matches, builtins, action: isResponse ? 'Mask' : action } as const
  }

  #webhook({ backendRef, forwardHeaderMatches = [] }: WebhookSpec, path: string) {
    const forward = forwardHeaderMatches.map(({ name, type = 'Exact', value }, at) => {
      const checked = type === 'RegularExpression' ? checkRegex(value) : undefined
      if (checked?.ok === false) {
        this.#refuse(`${path}.forwardHeaderMatches[${at}].value`, checked.message)
      }
      return { name: name.toLowerCase(), type, value }
    })
    const target = this.#references.backend(backendRef)
    if (typeof target !== 'string') return { type: 'webhook', target, forward } as const
    this.#refuse(`${path}.backendRef`, target)
    return undefined
  }

  #moderation({ model, policies = {} }: ModerationSpec, path: string) {
    const { tcp, tls, http, auth } = policies
    const compiled: Readonly<Record<string, Compiled<unknown> | undefined>> = {
      tcp: tcp && compileTcp(tcp),
      tls: tls && compileTls(tls, this.#references),
      http: http && compileHttp(http),
      auth: auth && compileAuth(auth, this.#references),
    }
    const configs = Object.entries(compiled).flatMap(([field, outcome]) => {
      const { config, problems = [], secrets = [] } = outcome ?? {}
      for (const { path: inside, message } of problems) {
        const at = inside === '' ? field : `${field}.${inside}`
        this.#refuse(`${path}.policies.${at}`, message)
      }
      this.secrets.push(...secrets)
      return config === undefined ? [] : [{ field, config }]
    })
    const type = 'moderation' as const
    return { type, policies: configs, ...(model !== undefined && { model }) }
  }
}

/** Returns true if matches of the pattern have no maximum length. */
function isUnbounded(pattern: string): boolean {
  const outcome = compileMask([{ pattern, replacement: '' }])
  if (!outcome.ok) return false
  const { holdBytes } = outcome.mask
  outcome.mask.dispose()
  return holdBytes === undefined
}

/** Settings of language models. It contains guards, so all requests are rejected if it is invalid. */
export const backendAi = definePolicy({
  section: 'backend',
  field: 'ai',
  schema: backendAiSchema,
  doc: 'Settings for language models. They apply to backends of type ai only.',
  security: true,
  compile,
  apply: () => import('./apply.ts'),
})
