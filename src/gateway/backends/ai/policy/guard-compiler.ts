/** Compiles the guards of a policy, and reports what keeps them from being enforced. */
import { checkRegex } from '../../../../engines/core/regex.ts'
import { compileMask } from '../../../../engines/core/regex-mask.ts'
import { wordsRule } from '../../../../engines/messages/mask/regex-guard.ts'
import type { References } from '../../../../ground/model/references.ts'
import type { SecretRef } from '../../../../ground/model/resources.ts'
import { compile as compileAuth } from '../../../policies/backend-simple/auth/index.ts'
import { compile as compileHttp } from '../../../policies/backend-simple/http/index.ts'
import { compile as compileTcp } from '../../../policies/backend-simple/tcp/index.ts'
import { compile as compileTls } from '../../../policies/backend-simple/tls/index.ts'
import type { Compiled, PolicyProblem } from '../../../policies/define.ts'
import { compileService, serviceNameOf } from '../guards/services/compile.ts'
import type { ServiceName } from '../guards/services/config.ts'
import type { GuardConfig, GuardSettings, ServiceConfig } from './config.ts'
import type { BackendAiSpec } from './schema.ts'
import { placesOf } from './scope.ts'

/** A request guard; response guards have the same fields, except for moderation. */
type GuardSpec = NonNullable<NonNullable<BackendAiSpec['promptGuard']>['request']>[number]
type RegexSpec = NonNullable<GuardSpec['regex']>
type WebhookSpec = NonNullable<GuardSpec['webhook']>
type ModerationSpec = NonNullable<GuardSpec['vendorAModeration']>

interface ConnectionPolicies {
  readonly tcp?: Parameters<typeof compileTcp>[0] | undefined
  readonly tls?: Parameters<typeof compileTls>[0] | undefined
  readonly http?: Parameters<typeof compileHttp>[0] | undefined
  readonly auth?: Parameters<typeof compileAuth>[0] | undefined
}

const messagesText = {
  model: { request: 'requests to models', response: 'responses of models' },
  mcp: { request: 'MCP requests', response: 'MCP responses' },
} as const

/** The messages that guards read. Guards of `json` have no scope, because paths name their texts. */
type GuardedMessages = keyof typeof messagesText | 'json'

export class GuardCompiler {
  readonly problems: PolicyProblem[] = []
  readonly secrets: SecretRef[] = []
  readonly #references: References
  readonly #messages: GuardedMessages
  /** Path of the guards below the field of the policy. */
  readonly #at: string
  /** Whether responses may be streamed, so that what has matched can only be masked. */
  readonly #mayStream: boolean

  constructor(references: References, messages: GuardedMessages = 'model') {
    this.#references = references
    this.#messages = messages
    this.#at = messages === 'json' ? '' : 'promptGuard.'
    this.#mayStream = messages === 'model'
  }

  /** Compiles a guard; undefined if its service does not exist. */
  compileOne(guard: GuardSpec, list: 'request' | 'response', at: number): GuardConfig | undefined {
    return this.#compile(guard, list, at)[0]
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
  refuse(path: string, message: string): void {
    this.problems.push({ path, message })
  }

  /** Returns nothing if the service of the guard does not exist. */
  #compile(guard: GuardSpec, list: 'request' | 'response', at: number): GuardConfig[] {
    const { regex, webhook, vendorAModeration } = guard
    const service = serviceNameOf(guard)
    const path = `${this.#at}${list}[${at}]`
    const compiled =
      (regex && this.#regex(regex, `${path}.regex`, list)) ??
      (webhook && this.#webhook(webhook, `${path}.webhook`)) ??
      (vendorAModeration && this.#moderation(vendorAModeration, `${path}.vendorAModeration`)) ??
      (service && this.#service(service, guard, `${path}.${service}`))
    return compiled === undefined ? [] : [{ ...compiled, ...this.#settings(guard, list, path) }]
  }

  #settings(guard: GuardSpec, list: 'request' | 'response', path: string): GuardSettings {
    const { response, name, percent, regex, webhook, vendorAModeration } = guard
    const field = serviceNameOf(guard)
    const service = webhook ?? vendorAModeration ?? (field && guard[field])
    const isAudit = (regex ?? service)?.action === 'Audit'
    if (percent !== undefined && !isAudit) {
      this.refuse(`${path}.percent`, 'is only for action Audit: other guards read every message')
    }
    this.#checkScope(guard, list, path)
    const refusal = {
      status: response?.statusCode ?? 403,
      message: response?.message ?? `The ${list} was rejected due to inappropriate content`,
      ...(response?.showGuard === true && { showsGuard: true }),
    }
    return {
      refusal,
      ...(name !== undefined && { name }),
      ...(guard.scope !== undefined && { scope: [...new Set(guard.scope)] }),
      ...(isAudit && { isAudit, ...(percent !== undefined && { percent }) }),
      ...(service?.failureMode === 'FailOpen' && { failsOpen: true }),
    }
  }

  /** Reports places that the messages do not have. */
  #checkScope({ scope = [] }: GuardSpec, list: 'request' | 'response', path: string): void {
    const kind = this.#messages
    if (kind === 'json') return
    const known = placesOf(kind, list)
    const messages = messagesText[kind][list]
    for (const [at, place] of scope.entries()) {
      if (known.includes(place)) continue
      this.refuse(`${path}.scope[${at}]`, `${messages} have no ${place}: use ${known.join(', ')}`)
    }
  }

  /** Compiles a regex guard. Matches in responses that may be streamed are always masked. */
  #regex(spec: RegexSpec, path: string, list: 'request' | 'response') {
    const { matches = [], builtins = [], action = 'Mask' } = spec
    const words = this.#words(spec, path)
    const isStreamed = this.#mayStream && list === 'response'
    // Nothing restores texts in results of tools.
    const isReversible = action === 'Reversible' && list === 'request' && this.#mayStream
    if (action === 'Reversible' && !isReversible) {
      const message = 'Reversible is for requests to models: what matches is masked for good'
      this.remark(`${path}.action`, message)
    }
    if (isStreamed && action === 'Reject') {
      this.remark(`${path}.action`, 'responses are masked, whatever the action is')
    }
    for (const [at, pattern] of matches.entries()) {
      const checked = checkRegex(pattern)
      if (!checked.ok) this.refuse(`${path}.matches[${at}]`, checked.message)
      else if (isStreamed && isUnbounded(pattern)) {
        const message =
          'what it matches has no largest length: streamed responses may be held back, and those that stay undecided for too long are cut off'
        this.remark(`${path}.matches[${at}]`, message)
      }
    }
    if (matches.length + builtins.length + words.length === 0) {
      this.remark(path, 'has no matches, builtins or words: it finds nothing')
    }
    const acts = (action === 'Reject' && !isStreamed) || isReversible ? action : 'Mask'
    const found = { matches, builtins, ...(words.length > 0 && { words }) }
    return { type: 'regex', ...found, action: acts } as const
  }

  /** The words of the list and of the ConfigMap. */
  #words({ words = [], wordsRef }: RegexSpec, path: string): readonly string[] {
    this.#checkWords(words, `${path}.words`)
    if (wordsRef === undefined) return words
    const at = `${path}.wordsRef`
    const { name, key = 'words' } = wordsRef
    const configMap = this.#references.configMap(name)
    if (configMap === undefined) {
      this.refuse(at, `ConfigMap ${name} does not exist`)
      return words
    }
    const entry = configMap.entry(key)
    if (entry === undefined) {
      this.refuse(at, `ConfigMap ${configMap.label} has no text ${key}`)
      return words
    }
    const referenced = linesOf(entry)
    const all = [...words, ...referenced]
    const problem = wordsProblem(all)
    if (problem === undefined) return all
    const own = wordsProblem(referenced) ?? problem
    this.refuse(at, `ConfigMap ${configMap.label}, ${key}: ${own}`)
    return words
  }

  #checkWords(words: readonly string[], path: string): void {
    const problem = wordsProblem(words)
    if (problem !== undefined) this.refuse(path, problem)
  }

  #webhook({ backendRef, forwardHeaderMatches = [], streams }: WebhookSpec, path: string) {
    const forward = forwardHeaderMatches.map(({ name, type = 'Exact', value }, at) => {
      const checked = type === 'RegularExpression' ? checkRegex(value) : undefined
      if (checked?.ok === false) {
        this.refuse(`${path}.forwardHeaderMatches[${at}].value`, checked.message)
      }
      return { name: name.toLowerCase(), type, value }
    })
    const target = this.#references.backend(backendRef)
    const whole = streams === 'Whole' ? { holdsStreams: true } : {}
    if (typeof target !== 'string') return { type: 'webhook', target, forward, ...whole } as const
    this.refuse(`${path}.backendRef`, target)
    return undefined
  }

  #moderation({ model = 'omni-moderation-latest', policies = {} }: ModerationSpec, path: string) {
    const connections = this.#connections(policies, `${path}.policies`)
    const service = 'moderation' as const
    return { type: 'service', service, config: { model }, policies: connections } as const
  }

  #service(name: ServiceName, guard: GuardSpec, path: string) {
    const spec = guard[name]
    if (spec === undefined) return undefined
    const { config, auth, keyHeader } = compileService(name, guard)
    const { backendRef, policies } = { policies: undefined, backendRef: undefined, ...spec }
    const type = 'service' as const
    const streams = spec.streams === 'Whole' ? { holdsStreams: true } : {}
    if (backendRef !== undefined) {
      if (policies !== undefined) {
        this.refuse(`${path}.policies`, 'backendRef has its own policies')
      }
      const target = this.#references.backend(backendRef)
      if (typeof target !== 'string') {
        return { type, service: name, config, target, ...streams, policies: [] }
      }
      this.refuse(`${path}.backendRef`, target)
      return undefined
    }
    const given = policies?.auth
    const isKey = (given?.key ?? given?.secretRef) !== undefined && given?.location === undefined
    const location = keyHeader === undefined ? undefined : { header: { name: keyHeader } }
    const credentials =
      given?.aws !== undefined
        ? { ...given, aws: { ...auth?.aws, ...given.aws } }
        : given !== undefined && isKey && location !== undefined
          ? { ...given, location }
          : (given ?? auth)
    const connections = this.#connections(
      { tls: policies?.tls, auth: credentials },
      `${path}.policies`,
    )
    return { type, service: name, config, ...streams, policies: connections }
  }

  #connections(
    { tcp, tls, http, auth }: ConnectionPolicies,
    path: string,
  ): ServiceConfig['policies'] {
    const compiled: Readonly<Record<string, Compiled<unknown> | undefined>> = {
      tcp: tcp && compileTcp(tcp),
      tls: tls && compileTls(tls, this.#references),
      http: http && compileHttp(http),
      auth: auth && compileAuth(auth, this.#references),
    }
    return Object.entries(compiled).flatMap(([field, outcome]) => {
      const { config, problems = [], secrets = [] } = outcome ?? {}
      for (const { path: inside, message } of problems) {
        const at = inside === '' ? field : `${field}.${inside}`
        this.refuse(`${path}.${at}`, message)
      }
      this.secrets.push(...secrets)
      return config === undefined ? [] : [{ field, config }]
    })
  }
}

/** The lines of a text that are not empty. */
const linesOf = (text: string): string[] =>
  text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '')

/** Returns what is wrong with a list of words. */
function wordsProblem(words: readonly string[]): string | undefined {
  if (words.length === 0) return undefined
  const outcome = compileMask([wordsRule(words)])
  if (!outcome.ok) return outcome.message
  outcome.mask.dispose()
  return undefined
}

/** Returns true if matches of the pattern have no maximum length. */
function isUnbounded(pattern: string): boolean {
  const outcome = compileMask([{ pattern, replacement: '' }])
  if (!outcome.ok) return false
  const { holdBytes } = outcome.mask
  outcome.mask.dispose()
  return holdBytes === undefined
}
