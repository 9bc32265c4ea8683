import { type CelResult, errorText, isCelError } from '../../../engines/cel/index.ts'
import { choice, type Infer, list, record, text } from '../../../ground/base/shape.ts'
import { type Exchange, quoteInDetail } from '../../../ground/exchange/exchange.ts'
import { type BodyNeeds, Expression } from '../../variables/index.ts'

/** The compiled form that proxies receive: one rule. */
export const shape = record({
  action: choice('Allow', 'Deny', 'Require'),
  /** The rule matches if any of these expressions is true. */
  expressions: list(text),
})
export type AuthorizationConfig = Infer<typeof shape>

/** A rule of the request's policies; `index` is its position among them, least specific first. */
interface Rule {
  readonly action: AuthorizationConfig['action']
  readonly index: number
  readonly expressions: readonly Expression[]
}

/**
 * Evaluates the rules of all policies that apply; their order does not matter:
 *
 *   an expression of a Deny rule is true                   refused
 *   a Require rule without a true expression               refused
 *   an Allow rule has a true expression                    allowed
 *   there are Allow rules, but no true expression in them  refused
 *   otherwise                                              allowed
 *
 * If a request has several lines of a header, backends may read them joined, or one of them alone. An
 * expression of a Deny rule is true if it is true for any of these values, and that of another rule only if it
 * is true for all of them.
 */
export class AuthorizationRules implements BodyNeeds {
  readonly #deny: readonly Rule[]
  readonly #require: readonly Rule[]
  readonly #allow: readonly Rule[]
  readonly request: boolean
  readonly response = false

  constructor(configs: readonly AuthorizationConfig[]) {
    const rules = configs.map(({ action, expressions }, index) => {
      return { action, index, expressions: expressions.map((source) => new Expression(source)) }
    })
    const of = (action: Rule['action']) => rules.filter((rule) => rule.action === action)
    this.#deny = of('Deny')
    this.#require = of('Require')
    this.#allow = of('Allow')
    this.request = rules.some((rule) => rule.expressions.some(({ request }) => request))
  }

  /**
   * Returns which rule refuses the request; undefined if it is allowed. Bodies that the rules read must
   * already be buffered.
   */
  refusal(exchange: Exchange): string | undefined {
    for (const rule of this.#deny) {
      for (const expression of rule.expressions) {
        const result = expression.judge(exchange, mustDeny)
        if (mustDeny(result)) return denial(rule, expression, result)
      }
    }
    for (const rule of this.#require) {
      if (!hasTrue(rule, exchange)) return `${nameOf(rule)} is false: ${failures([rule], exchange)}`
    }
    if (this.#allow.length === 0) return undefined
    for (const rule of this.#allow) if (hasTrue(rule, exchange)) return undefined
    return `no Allow rule matched: ${failures(this.#allow, exchange)}`
  }
}

function hasTrue({ expressions }: Rule, exchange: Exchange): boolean {
  for (const expression of expressions) {
    if (expression.judge(exchange, isNotTrue) === true) return true
  }
  return false
}

const isNotTrue = (result: CelResult): boolean => result !== true

/**
 * Returns whether the result of a Deny expression refuses the request. False, null and a missing key do not. Every
 * other result (a wrong type, too much work, a body over its limit) does, so that a client cannot
 * bypass a Deny rule by making it fail.
 */
function mustDeny(result: CelResult): boolean {
  if (typeof result === 'boolean') return result
  if (result === null) return false
  return !(isCelError(result) && result.kind === 'missing')
}

const nameOf = ({ action, index }: Rule): string => `${action} rule ${index}`

function denial(rule: Rule, { source }: Expression, result: CelResult): string {
  const quoted = quoteInDetail(source)
  if (isCelError(result)) return `${nameOf(rule)} failed: ${errorText(result)}: ${quoted}`
  const why = result === true ? 'matched' : 'is neither true nor false'
  return `${nameOf(rule)} ${why}: ${quoted}`
}

/** Returns the expressions of rules that have no true expression, and their first error. */
function failures(rules: readonly Rule[], exchange: Exchange): string {
  const all = rules.flatMap(({ expressions }) => expressions)
  if (all.length === 0) return 'there is no expression'
  const sources = quoteInDetail(all.map(({ source }) => source).join(' || '))
  const error = all
    .map((one) => one.judge(exchange, isNotTrue))
    .find((result) => isCelError(result))
  return error === undefined ? sources : `${sources}; ${errorText(error)}`
}
