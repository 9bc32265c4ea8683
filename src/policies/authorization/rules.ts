/** Whether pooled rules let a request pass. */
import { type CelResult, isCelError } from '../../cel/index.ts'
import type { Exchange } from '../../exchange/exchange.ts'
import { type BodyNeeds, Expression } from '../../variables/index.ts'
import type { AuthorizationConfig } from './config.ts'

/**
 * Rules of all policies that apply, whatever their order:
 *
 *   any expression of a Deny rule hits           refused
 *   a Require rule without a true expression     refused
 *   an Allow rule has a true expression          allowed
 *   there are Allow rules, none has one          refused
 *   otherwise                                    allowed
 */
export class AuthorizationRules implements BodyNeeds {
  readonly #deny: readonly Expression[]
  /** One list for each rule. */
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

  /** May the request pass? Bodies that the rules read must be in memory. */
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
 * A missing key or null is no match. Whatever else is no bool (a wrong type, too much work, a body
 * over its limit) hits: nobody gets past a Deny rule by making it fail.
 */
function mustDeny(result: CelResult): boolean {
  if (typeof result === 'boolean') return result
  if (result === null) return false
  return !(isCelError(result) && result.kind === 'missing')
}
