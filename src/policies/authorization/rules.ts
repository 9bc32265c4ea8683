import { choice, type Infer, list, record, text } from '../../base/shape.ts'
import { type CelResult, isCelError } from '../../cel/index.ts'
import type { Exchange } from '../../exchange/exchange.ts'
import { type BodyNeeds, Expression } from '../../variables/index.ts'

/** The compiled form that proxies receive: one rule. */
export const shape = record({
  action: choice('Allow', 'Deny', 'Require'),
  /** The rule matches if any of these expressions is true. */
  expressions: list(text),
})
export type AuthorizationConfig = Infer<typeof shape>

/**
 * Evaluates the rules of all policies that apply; their order does not matter:
 *
 *   an expression of a Deny rule is true                   refused
 *   a Require rule without a true expression               refused
 *   an Allow rule has a true expression                    allowed
 *   there are Allow rules, but no true expression in them  refused
 *   otherwise                                              allowed
 */
export class AuthorizationRules implements BodyNeeds {
  readonly #deny: readonly Expression[]
  /** One list of expressions per Require rule. */
  readonly #require: readonly (readonly Expression[])[]
  readonly #allow: readonly Expression[]
  readonly #hasAllowRules: boolean
  readonly request: boolean
  readonly response = false

  constructor(rules: readonly AuthorizationConfig[]) {
    const of = (action: AuthorizationConfig['action']) =>
      rules
        .filter((rule) => rule.action === action)
        .map(({ expressions }) => expressions.map((source) => new Expression(source)))
    this.#deny = of('Deny').flat()
    this.#require = of('Require')
    this.#allow = of('Allow').flat()
    this.#hasAllowRules = rules.some(({ action }) => action === 'Allow')
    this.request = [...this.#deny, ...this.#require.flat(), ...this.#allow].some(
      ({ request }) => request,
    )
  }

  /** Is the request allowed? Bodies that the rules read must already be buffered. */
  allows(exchange: Exchange): boolean {
    for (const expression of this.#deny) {
      if (mustDeny(expression.evaluate(exchange))) return false
    }
    for (const rule of this.#require) {
      if (!hasTrue(rule, exchange)) return false
    }
    return !this.#hasAllowRules || hasTrue(this.#allow, exchange)
  }
}

function hasTrue(expressions: readonly Expression[], exchange: Exchange): boolean {
  for (const expression of expressions) if (expression.evaluate(exchange) === true) return true
  return false
}

/**
 * Does the result of a Deny expression refuse the request? False, null and a missing key do not. Every
 * other result (a wrong type, too much work, a body over its limit) does, so that a client cannot
 * bypass a Deny rule by making it fail.
 */
function mustDeny(result: CelResult): boolean {
  if (typeof result === 'boolean') return result
  if (result === null) return false
  return !(isCelError(result) && result.kind === 'missing')
}
