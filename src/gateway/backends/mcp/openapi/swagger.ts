/** Converts operations of Swagger 2.0 to the form of OpenAPI 3.0. Schemas stay where they are (`#/definitions/…`). */
import { type Fields, fieldsOf, listOf, type OpenApiDocument, textIn } from './document.ts'

const styles: Readonly<Record<string, { readonly style?: string; readonly explode: boolean }>> = {
  csv: { explode: false },
  ssv: { style: 'spaceDelimited', explode: false },
  tsv: { style: 'tabDelimited', explode: false },
  pipes: { style: 'pipeDelimited', explode: false },
  multi: { explode: true },
}

/** Members of a parameter that are not of its schema. */
const ofParameter = new Set(['name', 'in', 'description', 'required', 'collectionFormat', 'schema'])

const schemaOf = (parameter: Fields): Fields =>
  Object.fromEntries(Object.entries(parameter).filter(([key]) => !ofParameter.has(key)))

/** Returns the operation with `parameters`, `requestBody` and `responses` as in OpenAPI 3.0. */
export function fromSwagger(
  document: OpenApiDocument,
  operation: Fields,
  parameters: readonly Fields[],
): Fields {
  const isOfBody = ({ in: place }: Fields) => place === 'body' || place === 'formData'
  const body = parameters.filter(isOfBody)
  const consumes = textsOf(operation.consumes ?? document.root.consumes)
  const produces = textsOf(operation.produces ?? document.root.produces)
  return {
    ...operation,
    parameters: parameters.filter((one) => !isOfBody(one)).map(fromParameter),
    ...(body.length > 0 && { requestBody: bodyFrom(body, consumes) }),
    responses: Object.fromEntries(
      Object.entries(fieldsOf(operation.responses)).map(([status, one]) => [
        status,
        fromResponse(fieldsOf(document.resolve(one)), produces),
      ]),
    ),
  }
}

const textsOf = (value: unknown): string[] => listOf(value).flatMap((one) => textIn(one) ?? [])

function fromParameter(parameter: Fields): Fields {
  const { name, in: place, description, required, collectionFormat } = parameter
  const isList = parameter.type === 'array'
  const format = isList ? styles[textIn(collectionFormat) ?? 'csv'] : undefined
  return { name, in: place, description, required, schema: schemaOf(parameter), ...format }
}

function bodyFrom(parameters: readonly Fields[], consumes: readonly string[]): Fields {
  const whole = parameters.find(({ in: place }) => place === 'body')
  if (whole !== undefined) {
    const { description, required, schema } = whole
    const types = consumes.length === 0 ? ['application/json'] : consumes
    return {
      description,
      required,
      content: Object.fromEntries(types.map((type) => [type, { schema }])),
    }
  }
  const hasFile = parameters.some(({ type }) => type === 'file')
  const isMultipart = hasFile || consumes.includes('multipart/form-data')
  const required = parameters.filter((one) => one.required === true).map(({ name }) => name)
  const properties = Object.fromEntries(
    parameters.map((one) => [
      String(one.name),
      { ...schemaOf(one), description: one.description, ...(one.type === 'file' && binary) },
    ]),
  )
  const encoding = Object.fromEntries(
    parameters.flatMap((one) => {
      const format =
        one.type === 'array' ? styles[textIn(one.collectionFormat) ?? 'csv'] : undefined
      return format === undefined ? [] : [[String(one.name), { style: 'form', ...format }]]
    }),
  )
  const schema = { type: 'object', properties, ...(required.length > 0 && { required }) }
  const type = isMultipart ? 'multipart/form-data' : 'application/x-www-form-urlencoded'
  return { required: required.length > 0, content: { [type]: { schema, encoding } } }
}

const binary = { type: 'string', format: 'binary' }

function fromResponse({ schema, ...response }: Fields, produces: readonly string[]): Fields {
  if (schema === undefined) return response
  const types = produces.length === 0 ? ['application/json'] : produces
  return { ...response, content: Object.fromEntries(types.map((type) => [type, { schema }])) }
}
