/** Compiles the guards of a policy, and reports what keeps them from being enforced. */
import { checkRegex } from '../../../../engines/core/regex.ts'
import { compileMask } from '../../../../engines/core/regex-mask.ts'
import type { References } from '../../../../ground/model/references.ts'
import type { SecretRef } from '../../../../ground/model/resources.ts'
import { compile as compileAuth } from '../../../policies/backend-simple/auth/index.ts'
import { compile as compileHttp } from '../../../policies/backend-simple/http/index.ts'
import { compile as compileTcp } from '../../../policies/backend-simple/tcp/index.ts'
import { compile as compileTls } from '../../../policies/backend-simple/tls/index.ts'
import type { Compiled, PolicyProblem } from '../../../policies/define.ts'
import type { GuardConfig, GuardSettings } from './config.ts'
import type { BackendAiSpec } from './schema.ts'

/** A request guard; response guards have the same fields, except for moderation. */
type GuardSpec = NonNullable<NonNullable<BackendAiSpec['promptGuard']>['request']>[number]
type RegexSpec = NonNullable<GuardSpec['regex']>
type WebhookSpec = NonNullable<GuardSpec['webhook']>
type ModerationSpec = NonNullable<GuardSpec['vendorAModeration']>

export class GuardCompiler {
  readonly problems: PolicyProblem[] = []
  readonly secrets: SecretRef[] = []
  readonly #references: References
  /** Whether responses may be streamed, so that what has matched can only be masked. */
  readonly #mayStream: boolean

  constructor(references: References, mayStream = true) {
    this.#references = references
    this.#mayStream = mayStream
  }

  /** Compiles the guards of both directions, in their order. */
  compileAll({ request = [], response = [] }: NonNullable<BackendAiSpec['promptGuard']>) {
    return {
      requestGuards: request.flatMap((guard, at) => this.#compile(guard, 'request', at)),
      responseGuards: response.flatMap((guard, at) => this.#compile(guard, 'response', at)),
    }
  }

  /** Reports a problem that does not keep the policy from being enforced. */
  remark(path: string, message: string): void {
    this.problems.push({ path, message, partial: true })
  }

  /** Reports a problem that keeps a guard from being enforced. */
  #refuse(path: string, message: string): void {
    this.problems.push({ path, message })
  }

  /** Returns nothing if the service of the guard does not exist. */
  #compile(guard: GuardSpec, list: 'request' | 'response', at: number): GuardConfig[] {
    const { regex, webhook, vendorAModeration } = guard
    const path = `promptGuard.${list}[${at}]`
    const compiled =
      (regex && this.#regex(regex, `${path}.regex`, this.#mayStream && list === 'response')) ??
      (webhook && this.#webhook(webhook, `${path}.webhook`)) ??
      (vendorAModeration && this.#moderation(vendorAModeration, `${path}.vendorAModeration`))
    return compiled === undefined ? [] : [{ ...compiled, ...this.#settings(guard, list, path) }]
  }

  #settings(
    { response, name, percent, regex, webhook, vendorAModeration }: GuardSpec,
    list: 'request' | 'response',
    path: string,
  ): GuardSettings {
    const service = webhook ?? vendorAModeration
    const isAudit = (regex ?? service)?.action === 'Audit'
    if (percent !== undefined && !isAudit) {
      this.#refuse(`${path}.percent`, 'is only for action Audit: other guards read every message')
    }
    const refusal = {
      status: response?.statusCode ?? 403,
      message: response?.message ?? `The ${list} was rejected due to inappropriate content`,
      ...(response?.showGuard === true && { showsGuard: true }),
    }
    return {
      refusal,
      ...(name !== undefined && { name }),
      ...(isAudit && { isAudit, ...(percent !== undefined && { percent }) }),
      ...(service?.failureMode === 'FailOpen' && { failsOpen: true }),
    }
  }

  /** Compiles a regex guard. Matches in responses that may be streamed are always masked. */
  #regex(spec: RegexSpec, path: string, isStreamed: boolean) {
    const { matches = [], builtins = [], action = 'Mask' } = spec
    if (isStreamed && action === 'Reject') {
      this.remark(`${path}.action`, 'responses are masked, whatever the action is')
    }
    for (const [at, pattern] of matches.entries()) {
      const checked = checkRegex(pattern)
      if (!checked.ok) this.#refuse(`${path}.matches[${at}]`, checked.message)
      else if (isStreamed && isUnbounded(pattern)) {
        const message =
          'what it matches has no largest length: streamed responses may be held back, and those that stay undecided for too long are cut off'
        this.remark(`${path}.matches[${at}]`, message)
      }
    }
    if (matches.length + builtins.length === 0) {
      this.remark(path, 'has neither matches nor builtins: it finds nothing')
    }
    const rejects = action === 'Reject' && !isStreamed
    return { type: 'regex', matches, builtins, action: rejects ? 'Reject' : 'Mask' } as const
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
