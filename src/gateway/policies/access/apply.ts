/** Decides about requests by XAccessPolicies: first the services that they name, then their rules. */
import {
  type Exchange,
  next,
  type RespondVerdict,
  refuse,
  type Verdict,
} from '../../../ground/exchange/exchange.ts'
import type { LearnedRecord } from '../../../ground/exchange/learned.ts'
import { errorText } from '../../backends/mcp/json-rpc.ts'
import { type BodyNeeds, bufferBodies, Expression } from '../../variables/index.ts'
import { AuthorizationRules } from '../authorization/rules.ts'
import type { PolicyApply, Step } from '../define.ts'
import extAuth from '../ext-auth/apply.ts'
import { type AccessConfig, shape } from './config.ts'
import { messagesOf, noMessages, variablesOf } from './mcp-messages.ts'

/** An authorization service, and the requests that it decides about: all if `rules` is not set. */
interface Service {
  readonly rules: AuthorizationRules | undefined
  readonly step: Step
}

const apply: PolicyApply<readonly AccessConfig[]> = {
  shape,
  bind(configs, callouts, secrets, host) {
    const services = configs.flatMap(({ rules, extAuth: config }): Service[] => {
      if (config === undefined) return []
      // A Deny rule also matches if it cannot be evaluated, so that such requests do not bypass the service.
      const matching = rules && new AuthorizationRules([{ action: 'Deny', expressions: rules }])
      return [{ rules: matching, step: extAuth.bind(config, callouts, secrets, host) }]
    })
    const allowed = configs.flatMap(({ rules, extAuth: service }) =>
      rules === undefined || service !== undefined
        ? []
        : [new AuthorizationRules([{ action: 'Require', expressions: rules }])],
    )
    const access = new Access(services, allowed, configs)
    return {
      onRequest: (exchange) => access.decide(exchange),
      ...(services.some(({ step }) => step.onResponse !== undefined) && {
        onResponse: (exchange: Exchange) => access.changeResponse(exchange),
      }),
    }
  },
}

export default apply

/** Methods of MCP. Refusals of their requests are JSON-RPC errors. */
const mcpMethod =
  /^(?:initialize|ping|server\/discover|subscriptions\/listen|(?:tools|prompts|resources|completion|logging)\/)/

class Access {
  readonly #services: readonly Service[]
  readonly #allowed: readonly AuthorizationRules[]
  readonly #readsMessages: boolean
  readonly #needs: BodyNeeds

  constructor(
    services: readonly Service[],
    allowed: readonly AuthorizationRules[],
    configs: readonly AccessConfig[],
  ) {
    const expressions = configs.flatMap(({ rules = [] }) => rules.map((one) => new Expression(one)))
    this.#services = services
    this.#allowed = allowed
    this.#readsMessages = expressions.some((one) => one.mentions('mcp'))
    this.#needs = { request: expressions.some(({ request }) => request), response: false }
  }

  decide(exchange: Exchange): Verdict | Promise<Verdict> {
    const isImmediate = !this.#readsMessages && !this.#needs.request && this.#services.length === 0
    return isImmediate ? this.#judge(exchange, noMessages.perMessage) : this.#askAndJudge(exchange)
  }

  async #askAndJudge(exchange: Exchange): Promise<Verdict> {
    await bufferBodies(exchange, this.#needs)
    const { isComplete, perMessage } = this.#readsMessages
      ? await variablesOf(exchange)
      : noMessages
    for (const { rules, step } of this.#services) {
      const isMatch =
        rules === undefined ||
        !isComplete ||
        firstRefusal(rules, exchange, perMessage) !== undefined
      const verdict = isMatch ? await step.onRequest?.(exchange) : next
      if (verdict?.kind === 'respond') return asMcp(exchange, verdict)
    }
    return this.#judge(exchange, perMessage)
  }

  #judge(exchange: Exchange, messages: readonly LearnedRecord[]): Verdict | Promise<Verdict> {
    for (const rules of this.#allowed) {
      const detail = firstRefusal(rules, exchange, messages)
      if (detail === undefined) continue
      // The body does not name the rule, since that would help an attacker.
      return asMcp(exchange, refuse(403, 'Authorization', 'authorization failed', detail))
    }
    return next
  }

  async changeResponse(exchange: Exchange): Promise<void> {
    for (const { step } of this.#services) await step.onResponse?.(exchange)
  }
}

/** The first refusal of the request, or of one of its messages; undefined if there is none. */
function firstRefusal(
  rules: AuthorizationRules,
  exchange: Exchange,
  messages: readonly LearnedRecord[],
): string | undefined {
  if (messages.length === 0) return rules.refusal(exchange)
  try {
    for (const message of messages) {
      exchange.learned.describeMcp(() => message)
      const detail = rules.refusal(exchange)
      if (detail !== undefined) return detail
    }
    return undefined
  } finally {
    exchange.learned.describeMcp(undefined)
  }
}

/**
 * Answers a refused request of an MCP client with a JSON-RPC error, as the conformance tests of kube-agentic-networking
 * expect. Other requests, and refusals that ask for credentials, keep their response.
 */
async function asMcp(exchange: Exchange, verdict: RespondVerdict): Promise<RespondVerdict> {
  const asksForCredentials = verdict.headers?.some(
    ([name]) => name.toLowerCase() === 'www-authenticate',
  )
  if (verdict.status !== 403 || asksForCredentials === true) return verdict
  const [message, more] = (await messagesOf(exchange)) ?? []
  if (message?.kind !== 'request' || more !== undefined || !mcpMethod.test(message.method)) {
    return verdict
  }
  const what = message.method === 'tools/call' ? 'tool' : 'method'
  const body = errorText(message.id, 403, `Access to this ${what} is forbidden.`)
  const headers = [['content-type', 'application/json']] as const
  const { reason, detail } = verdict
  return { kind: 'respond', status: 200, headers, body, reason, ...(detail && { detail }) }
}
