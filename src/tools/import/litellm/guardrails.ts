/** Reads `guardrails` of a LiteLLM configuration. */
import { entryOf } from '../../../ground/base/json-object.ts'
import { compact, type Fields, filled } from '../conversion.ts'
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
export function promptGuards(root: SourceField): Fields | undefined {
  const found = root.items('guardrails').flatMap((guardrail) => sidedGuards(guardrail))
  const of = (side: string) => {
    const list = found.filter((entry) => entry.side === side).map(({ guard }) => guard)
    return filled(list)
  }
  return found.length > 0
    ? compact({ request: of('request'), response: of('response') })
    : undefined
}

function sidedGuards(guardrail: SourceField): { side: string; guard: Fields }[] {
  guardrail.ignore('guardrail_name', 'guardrail_info')
  const params = guardrail.get('litellm_params')
  const guards = guardsOf(guardrail, params)
  if (guards.length === 0) return []
  if (params.flag('default_on') !== true) {
    guardrail.report('changed', 'applies to all requests, not only to those that name it')
  }
  const restored = params.get('output_parse_pii')
  if (restored.flag() === true) {
    restored.report('lost', 'masked values are not put back into answers')
  }
  return params.oneOrMore('mode').flatMap((field) => {
    const side = entryOf(sides, field.text() ?? '')
    const usable = guards.filter(({ regex }) => side !== 'response' || regex !== undefined)
    if (side === undefined || usable.length < guards.length) {
      field.report('protection', 'the guardrail cannot be applied in this mode')
    }
    return side === undefined ? [] : usable.map((guard) => ({ side, guard }))
  })
}

function guardsOf(guardrail: SourceField, params: SourceField): Fields[] {
  const name = params.text('guardrail') ?? ''
  if (name === 'presidio') return presidio(params)
  if (name === 'openai_moderation') {
    return [{ vendorAModeration: compact({ model: params.text('model') }) }]
  }
  guardrail.refuse('protection', `the guardrail ${name} has no counterpart`)
  return []
}

/** Presidio finds entities by their form, as the built-in patterns do. */
function presidio(params: SourceField): Fields[] {
  const config = params.get('pii_entities_config')
  if (!config.isSet) {
    params.report(
      'protection',
      'presidio without pii_entities_config finds more than the built-in patterns',
    )
    return []
  }
  const actions = new Map<string, string[]>()
  for (const [entity, action] of config.entries()) {
    const builtin = entryOf(builtins, entity)
    if (builtin === undefined) {
      action.refuse('protection', `no built-in pattern finds ${entity}`)
      continue
    }
    const wanted = action.text() === 'BLOCK' ? 'Reject' : 'Mask'
    actions.set(wanted, [...(actions.get(wanted) ?? []), builtin])
  }
  return [...actions].map(([action, found]) => ({ regex: { action, builtins: found } }))
}
