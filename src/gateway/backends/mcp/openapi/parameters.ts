/** Parameters of operations: how they are written, and their schemas. */
import { DocumentProblem, type Fields, fieldsOf, textIn } from './document.ts'
import type { ToolSchemas } from './schemas.ts'
import type { ParameterPlace, ParameterPlan } from './serialize.ts'

export const places: readonly ParameterPlace[] = [
  'path',
  'query',
  'querystring',
  'header',
  'cookie',
]

export function parameterSchema(parameter: Fields, schemas: ToolSchemas): unknown {
  const [media] = Object.values(fieldsOf(parameter.content))
  const schema = schemas.convert(parameter.schema ?? fieldsOf(media).schema ?? {})
  const description = textIn(parameter.description)
  return description === undefined || typeof schema === 'boolean'
    ? schema
    : { description, ...fieldsOf(schema) }
}

const defaultStyles: Readonly<Partial<Record<ParameterPlace, string>>> = {
  query: 'form',
  cookie: 'form',
}

/** @throws DocumentProblem */
export function parameterPlan(parameter: Fields): ParameterPlan {
  const name = textIn(parameter.name)
  const place = places.find((one) => one === parameter.in)
  if (name === undefined || name === '' || place === undefined) {
    throw new DocumentProblem(`a parameter in ${JSON.stringify(parameter.in)} is not supported`)
  }
  const style = textIn(parameter.style) ?? defaultStyles[place] ?? 'simple'
  const { explode, content } = parameter
  return {
    name,
    in: place,
    style,
    explode: typeof explode === 'boolean' ? explode : style === 'form' || style === 'cookie',
    allowReserved: place === 'query' && parameter.allowReserved === true,
    isJson: content !== undefined && !(place === 'querystring' && isForm(content)),
  }
}

/** Whether a whole query is written as a form or as text, and not as JSON. */
function isForm(content: unknown): boolean {
  const [type = ''] = Object.keys(fieldsOf(content))
  return /^(application\/x-www-form-urlencoded|text\/plain)\s*(;|$)/i.test(type)
}

/** @throws DocumentProblem if a whole query is beside other parameters of the query, or beside another one */
export function checkQuery(parameters: readonly ParameterPlan[]): void {
  const count = (place: ParameterPlace) => parameters.filter((one) => one.in === place).length
  const whole = count('querystring')
  if (whole > 1 || (whole === 1 && count('query') > 0)) {
    throw new DocumentProblem('a parameter in "querystring" excludes others of the query')
  }
}

/** @throws DocumentProblem if the path has a parameter that is not described */
export function checkTemplate(path: string, parameters: readonly ParameterPlan[]): void {
  for (const [, name = ''] of path.matchAll(/\{([^{}]+)\}/g)) {
    if (!parameters.some((one) => one.in === 'path' && one.name === name)) {
      throw new DocumentProblem(`the parameter {${name}} is not described`)
    }
  }
  if (/[?#\s]/.test(path)) throw new DocumentProblem('the path has a query or white space')
}
