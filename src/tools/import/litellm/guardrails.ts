/** Reads `guardrails` of a LiteLLM configuration. */
import { entryOf } from '../../../ground/base/json-object.ts'
import { type Conversion, compact, type Fields, filled } from '../conversion.ts'
import type { SourceField } from '../field.ts'

const builtins: Readonly<Record<string, string>> = {
  CREDIT_CARD: 'CreditCard',
  EMAIL_ADDRESS: 'Email',
  PHONE_NUMBER: 'PhoneNumber',
  US_SSN: 'Ssn',
}

/** Where each mode of LiteLLM applies a guard. */
const sides: Readonly<Record<string, 'request' | 'response'>> = {
  pre_call: 'request',
  during_call: 'request',
  post_call: 'response',
}

/** The guards of all models; undefined if none can be converted. */
export function promptGuards(root: SourceField, result: Conversion): Fields | undefined {
  const found = root.items('guardrails').flatMap((guardrail) => sidedGuards(guardrail, result))
  const of = (side: string) => {
    const list = found.filter((entry) => entry.side === side).map(({ guard }) => guard)
    return filled(list)
  }
  return found.length > 0
    ? compact({ request: of('request'), response: of('response') })
    : undefined
}

function sidedGuards(
  guardrail: SourceField,
  result: Conversion,
): { side: string; guard: Fields }[] {
  guardrail.ignore('guardrail_name', 'guardrail_info')
  const params = guardrail.get('litellm_params')
  const guards = guardsOf(guardrail, params, result)
  if (guards.length === 0) return []
  if (params.flag('default_on') !== true) {
    result.report('changed', guardrail, 'applies to all requests, not only to those that name it')
  }
  const restored = params.get('output_parse_pii')
  if (restored.flag() === true) {
    result.report('lost', restored, 'masked values are not put back into answers')
  }
  return params.oneOrMore('mode').flatMap((field) => {
    const side = entryOf(sides, field.text() ?? '')
    const usable = guards.filter(({ regex }) => side !== 'response' || regex !== undefined)
    if (side === undefined || usable.length < guards.length) {
      result.report('protection', field, 'the guardrail cannot be applied in this mode')
    }
    return side === undefined ? [] : usable.map((guard) => ({ side, guard }))
  })
}

function guardsOf(guardrail: SourceField, params: SourceField, result: Conversion): Fields[] {
  const name = params.text('guardrail') ?? ''
  if (name === 'presidio') return presidio(params, result)
  if (name === 'openai_moderation') {
    return [{ vendorAModeration: compact({ model: params.text('model') }) }]
  }
  result.report('protection', guardrail, `the guardrail ${name} has no counterpart`)
  guardrail.take()
  return []
}

/** Presidio finds entities by their form, as the built-in patterns do. */
function presidio(params: SourceField, result: Conversion): Fields[] {
  const config = params.get('pii_entities_config')
  if (!config.isSet) {
    result.report(
      'protection',
      params,
      'presidio without pii_entities_config finds more than the built-in patterns',
    )
    return []
  }
  const actions = new Map<string, string[]>()
  for (const [entity, action] of config.entries()) {
    const builtin = entryOf(builtins, entity)
    if (builtin === undefined) {
      result.report('protection', action, `no built-in pattern finds ${entity}`)
      action.take()
      continue
    }
    const wanted = action.text() === 'BLOCK' ? 'Reject' : 'Mask'
    actions.set(wanted, [...(actions.get(wanted) ?? []), builtin])
  }
  return [...actions].map(([action, found]) => ({ regex: { action, builtins: found } }))
}
