/** Makes the HTTP request of a tool call. */
import { isObject } from '../../../../ground/base/json-object.ts'
import { type WrittenBody, writeBody } from './body.ts'
import type { OperationPlan } from './operations.ts'
import {
  ArgumentProblem,
  type ParameterPlace,
  type ParameterPlan,
  writeCookie,
  writeHeader,
  writePairs,
  writePath,
  writeQueryString,
} from './serialize.ts'

export interface ApiRequest {
  readonly method: string
  /** Path below the base path, and query. */
  readonly path: string
  /** Headers of parameters, in lower case. */
  readonly headers: readonly (readonly [name: string, value: string])[]
  readonly body: WrittenBody | undefined
}

type Arguments = Readonly<Record<string, unknown>>

/** @throws ArgumentProblem, whose message is for the model */
export function requestOf(plan: OperationPlan, args: unknown, boundary: () => string): ApiRequest {
  if (args !== undefined && !isObject(args))
    throw new ArgumentProblem('arguments must be an object')
  const groups = args ?? {}
  checkNames(plan, groups)
  const valuesAt = (place: ParameterPlace): Arguments => (groups[place] ?? {}) as Arguments
  const at = (place: ParameterPlace) => plan.parameters.filter((one) => one.in === place)
  const pairs = at('query').map((one) => writePairs(one, argumentOf(valuesAt('query'), one)))
  const whole = at('querystring').map((one) =>
    writeQueryString(one, argumentOf(valuesAt('querystring'), one)),
  )
  const query = [...pairs, ...whole].filter((one) => one !== '').join('&')
  const path = writePath(plan.path, plan.parameters, valuesAt('path'))
  const { body } = groups
  return {
    method: plan.method,
    path: query === '' ? path : `${path}?${query}`,
    headers: [
      ...headersOf(at('header'), valuesAt('header')),
      ...cookieOf(at('cookie'), valuesAt('cookie')),
    ],
    body:
      plan.body === undefined || body === undefined
        ? undefined
        : writeBody(plan.body, body, boundary),
  }
}

const argumentOf = (values: Arguments, { name }: ParameterPlan): unknown =>
  Object.hasOwn(values, name) ? values[name] : undefined

/** @throws ArgumentProblem if an argument is unknown, or a required one is missing */
function checkNames({ parameters, required, body }: OperationPlan, groups: Arguments): void {
  for (const [place, values] of Object.entries(groups)) {
    if (place !== 'body' || body === undefined) checkGroup(place, values, parameters)
  }
  for (const one of required) {
    const [place = '', ...rest] = one.split('.')
    const name = rest.join('.')
    const values = (groups[place] ?? {}) as Arguments
    const value = Object.hasOwn(values, name) ? values[name] : undefined
    if (value === undefined || value === null) throw new ArgumentProblem(`${one} is missing`)
  }
  if (body?.required === true && groups.body === undefined) {
    throw new ArgumentProblem('body is missing')
  }
}

function checkGroup(place: string, values: unknown, parameters: readonly ParameterPlan[]): void {
  const own = parameters.filter((one) => one.in === place)
  if (own.length === 0) throw new ArgumentProblem(`unknown argument ${place}`)
  if (!isObject(values)) throw new ArgumentProblem(`${place} must be an object`)
  const unknown = Object.keys(values).find((name) => !own.some((one) => one.name === name))
  if (unknown !== undefined) {
    throw new ArgumentProblem(`unknown argument ${place}.${unknown}`)
  }
}

function headersOf(plans: readonly ParameterPlan[], values: Arguments) {
  return plans.flatMap((plan) => {
    const value = writeHeader(plan, argumentOf(values, plan))
    return value === undefined ? [] : [[plan.name.toLowerCase(), value] as const]
  })
}

function cookieOf(plans: readonly ParameterPlan[], values: Arguments) {
  const pairs = plans.map((plan) => writeCookie(plan, argumentOf(values, plan)))
  const text = pairs.filter((one) => one !== '').join('; ')
  return text === '' ? [] : [['cookie', text] as const]
}
