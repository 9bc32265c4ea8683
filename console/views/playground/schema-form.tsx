/** Fields for the properties of a JSON schema: choices, numbers, texts, and JSON for everything else. */
import type { JsonSchema } from '../../source/mcp-client.ts'

type FieldType = 'choice' | 'flag' | 'number' | 'text' | 'json'

function typeOf({ type, enum: choices }: JsonSchema): FieldType {
  if (choices !== undefined) return 'choice'
  const [only] = [type].flat()
  if (only === 'boolean') return 'flag'
  if (only === 'integer' || only === 'number') return 'number'
  return only === 'string' ? 'text' : 'json'
}

const fieldName = (name: string) => `argument-${name}`

export function SchemaForm({ schema: { properties = {}, required = [] } }: { schema: JsonSchema }) {
  return (
    <>
      {Object.entries(properties).map(([name, property]) => (
        <div key={name} class="wide">
          <label for={fieldName(name)}>
            {name}
            {required.includes(name) ? '' : ' (optional)'}
          </label>
          <Field name={name} property={property} isRequired={required.includes(name)} />
          {property.description !== undefined && <span class="quiet">{property.description}</span>}
        </div>
      ))}
    </>
  )
}

interface FieldProps {
  readonly name: string
  readonly property: JsonSchema
  readonly isRequired: boolean
}

function Field({ name, property, isRequired }: FieldProps) {
  const common = { id: fieldName(name), name: fieldName(name), required: isRequired }
  const value = property.default === undefined ? '' : `${property.default}`
  switch (typeOf(property)) {
    case 'choice':
      return (
        <select {...common}>
          {!isRequired && <option value="" />}
          {property.enum?.map((choice) => (
            <option key={`${choice}`} value={JSON.stringify(choice)}>
              {`${choice}`}
            </option>
          ))}
        </select>
      )
    case 'flag':
      return <input type="checkbox" id={fieldName(name)} name={fieldName(name)} />
    case 'number':
      return <input type="number" step="any" {...common} value={value} />
    case 'text':
      return <input type="text" {...common} value={value} />
    case 'json':
      return <textarea rows={3} {...common} placeholder="JSON" />
  }
}

/** The arguments in a form; a text if a field is wrong. Empty optional fields are left out. */
export function argumentsOf(
  { properties = {}, required = [] }: JsonSchema,
  form: FormData,
): Readonly<Record<string, unknown>> | string {
  const args: [string, unknown][] = []
  for (const [name, property] of Object.entries(properties)) {
    const value = argumentOf(
      property,
      `${form.get(fieldName(name)) ?? ''}`,
      required.includes(name),
    )
    if (value === notJson) return `${name}: not JSON`
    if (value !== undefined) args.push([name, value])
  }
  return Object.fromEntries(args)
}

const notJson = Symbol('not JSON')

/** The value of a field; undefined if it is left out. The browser asks for required fields that are empty. */
function argumentOf(property: JsonSchema, text: string, isRequired: boolean): unknown {
  const type = typeOf(property)
  const isEmpty = text === ''
  if (isEmpty && !isRequired) return undefined
  if (type === 'flag') return !isEmpty
  if (type === 'text') return text
  if (type === 'number') return Number(text)
  try {
    return JSON.parse(text)
  } catch {
    return notJson
  }
}
