/** Makes MCP tools of the operations of an OpenAPI document. */
import { hexDigest } from '../../../../ground/base/digest.ts'
import { type BodyPlan, bodyFormatOf, type MemberPlan } from './body.ts'
import { declaredPages } from './declared-pages.ts'
import {
  DocumentProblem,
  type Fields,
  fieldsOf,
  listOf,
  OpenApiDocument,
  textIn,
} from './document.ts'
import { checkQuery, checkTemplate, parameterPlan, parameterSchema, places } from './parameters.ts'
import { ToolSchemas } from './schemas.ts'
import type { ParameterPlan } from './serialize.ts'
import { isSelected, type OpenApiSource } from './settings.ts'
import { fromSwagger } from './swagger.ts'

/** How an operation is called. */
export interface OperationPlan {
  readonly method: string
  /** Path template, below the base path. */
  readonly path: string
  readonly parameters: readonly ParameterPlan[]
  /** Names of required parameters, such as `query.id`. */
  readonly required: readonly string[]
  readonly body?: BodyPlan
  /** Arguments of the next page: JSON pointers into the body of a response, by the names of query parameters. */
  readonly nextPage?: Readonly<Record<string, string>>
}

export interface OpenApiTool {
  readonly name: string
  /** The tool as `tools/list` shows it, with its name. */
  readonly definition: Fields
  readonly plan: OperationPlan
  readonly hasOutputSchema: boolean
}

export interface CompiledDocument {
  readonly title: string
  readonly version: string
  readonly basePath: string
  readonly tools: ReadonlyMap<string, OpenApiTool>
  /** Why operations are no tools. */
  readonly problems: readonly string[]
}

const methods = ['get', 'put', 'post', 'delete', 'options', 'head', 'patch', 'query']
const maxTools = 1_000
const maxDescription = 4_096
/** Clients allow names of 64 characters, which begin with the name of the target if there are several. */
const maxName = 64

/**
 * Compiles a document. Operations that cannot be called are left out, and `problems` says why.
 * @throws DocumentProblem if the document is not usable at all
 */
export function compileDocument(source: OpenApiSource, target: string): CompiledDocument {
  const document = new OpenApiDocument(source.document, source.references)
  const { info } = document.root
  const problems: string[] = []
  const tools = new Map<string, OpenApiTool>()
  for (const [path, item] of Object.entries(fieldsOf(document.root.paths))) {
    for (const found of operationsAt(document, path, item, problems)) {
      const { operation, method } = found
      const id = textIn(operation.operationId)
      const tags = listOf(operation.tags).flatMap((one) => textIn(one) ?? [])
      if (!isSelected(source, { tags, path, method, id })) continue
      try {
        if (tools.size >= maxTools)
          throw new DocumentProblem(`there are more than ${maxTools} tools`)
        const tool = toolOf(document, found, source, freeName(source, found, target, tools))
        tools.set(tool.name, tool)
      } catch (error) {
        if (!(error instanceof DocumentProblem)) throw error
        problems.push(`${method} ${path}: ${error.message}`)
      }
    }
  }
  return {
    title: textIn(fieldsOf(info).title) ?? 'API',
    version: textIn(fieldsOf(info).version) ?? '',
    basePath: document.basePath,
    tools,
    problems,
  }
}

interface FoundOperation {
  readonly path: string
  /** In upper case. */
  readonly method: string
  readonly item: Fields
  readonly operation: Fields
}

function operationsAt(
  document: OpenApiDocument,
  path: string,
  item: unknown,
  problems: string[],
): FoundOperation[] {
  if (!path.startsWith('/')) return []
  try {
    const resolved = fieldsOf(document.resolve(item))
    const additional = Object.entries(fieldsOf(resolved.additionalOperations))
    const usual = methods.map((method) => [method, resolved[method]] as const)
    return [...usual, ...additional].flatMap(([method, operation]) => {
      if (operation === undefined || !/^[A-Za-z]+$/.test(method)) return []
      return [
        { path, method: method.toUpperCase(), item: resolved, operation: fieldsOf(operation) },
      ]
    })
  } catch (error) {
    if (!(error instanceof DocumentProblem)) throw error
    problems.push(`${path}: ${error.message}`)
    return []
  }
}

/** Parameters of the path and the operation; those of the operation win. */
function parametersOf(document: OpenApiDocument, item: Fields, operation: unknown): Fields[] {
  const all = [...listOf(item.parameters), ...listOf(fieldsOf(operation).parameters)]
  const found = all.map((one) => fieldsOf(document.resolve(one)))
  return [...new Map(found.map((one) => [`${one.in} ${one.name}`, one])).values()]
}

// Names -------------------------------------------------------------------------------------------

function freeName(
  { tools: renamed = [] }: OpenApiSource,
  { operation, method, path }: FoundOperation,
  target: string,
  taken: ReadonlyMap<string, unknown>,
): string {
  const id = textIn(operation.operationId)
  const chosen = renamed.find((one) => one.operation === id)?.name
  const own = chosen ?? id ?? `${method.toLowerCase()}_${path.slice(1)}`
  const plain = own.replace(/[^A-Za-z0-9_-]+/g, '_').replace(/^_+|_+$/g, '') || 'operation'
  const room = maxName - target.length - 1
  const short = plain.length <= room ? plain : cut(plain, room)
  return taken.has(short) ? cut(`${short}_${method}_${path}`, room, true) : short
}

/** Cuts a name, and makes it distinct from others with the same beginning. */
function cut(name: string, room: number, isAlways = false): string {
  const plain = name.replace(/[^A-Za-z0-9_-]+/g, '_')
  if (plain.length <= room && !isAlways) return plain
  return `${plain.slice(0, Math.max(room - 7, 1))}_${hexDigest('sha256', name).slice(0, 6)}`
}

// Tools -------------------------------------------------------------------------------------------

function toolOf(
  document: OpenApiDocument,
  found: FoundOperation,
  source: OpenApiSource,
  name: string,
): OpenApiTool {
  const parameters = parametersOf(document, found.item, found.operation)
  const operation =
    document.version === '2.0'
      ? fromSwagger(document, found.operation, parameters)
      : { ...found.operation, parameters }
  const schemas = new ToolSchemas(document, 'request')
  const input = inputOf(document, operation, found, schemas)
  const output = source.hasOutputSchemas === true ? outputSchemaOf(document, operation) : undefined
  const id = textIn(operation.operationId)
  const described = source.tools?.find((one) => one.operation === id)?.description
  const definition = {
    name,
    description: described ?? descriptionOf(operation, found),
    inputSchema: { ...input.schema, ...schemas.definitions() },
    ...(output && { outputSchema: output }),
    annotations: annotationsOf(operation, found.method),
  }
  return { name, definition, plan: input.plan, hasOutputSchema: output !== undefined }
}

function descriptionOf(operation: Fields, { method, path }: FoundOperation): string {
  const texts = [textIn(operation.summary), textIn(operation.description)]
  const whole = [...new Set(texts.flatMap((text) => (text ? [text.trim()] : [])))].join('\n\n')
  const shown = whole === '' ? `${method} ${path}` : whole
  const cutText = shown.length > maxDescription ? `${shown.slice(0, maxDescription)}…` : shown
  return operation.deprecated === true ? `${cutText}\n\nDeprecated.` : cutText
}

const safeMethods = new Set(['GET', 'HEAD', 'OPTIONS', 'QUERY'])

function annotationsOf(operation: Fields, method: string): Fields {
  const title = textIn(operation.summary)
  const isSafe = safeMethods.has(method)
  return {
    ...(title !== undefined && { title }),
    readOnlyHint: isSafe,
    ...(!isSafe && {
      destructiveHint: method !== 'POST',
      idempotentHint: method === 'PUT' || method === 'DELETE',
    }),
  }
}

interface Input {
  readonly schema: Fields
  readonly plan: OperationPlan
}

/** The arguments of a tool: an object for each place of parameters, and the body. */
function inputOf(
  document: OpenApiDocument,
  operation: Fields,
  { method, path }: FoundOperation,
  schemas: ToolSchemas,
): Input {
  const reserved = credentialNames(document)
  const all = listOf(operation.parameters)
    .map(fieldsOf)
    .filter((one) => !isReserved(one, reserved))
  const properties: Record<string, unknown> = {}
  const required: string[] = []
  for (const place of places) {
    const own = all.filter((one) => one.in === place)
    if (own.length === 0) continue
    const names = own.filter((one) => isRequired(one)).map((one) => String(one.name))
    if (names.length > 0) required.push(place)
    properties[place] = {
      type: 'object',
      properties: Object.fromEntries(own.map((one) => [one.name, parameterSchema(one, schemas)])),
      ...(names.length > 0 && { required: names }),
      additionalProperties: false,
    }
  }
  const body = bodyOf(document, operation, schemas)
  if (body !== undefined) properties.body = body.schema
  if (body?.plan.required === true) required.push('body')
  const parameters = all.map((one) => parameterPlan(one))
  checkTemplate(path, parameters)
  checkQuery(parameters)
  const nextPage = declaredPages(document, operation)
  return {
    schema: {
      type: 'object',
      properties,
      ...(required.length > 0 && { required }),
      additionalProperties: false,
    },
    plan: {
      method,
      path,
      parameters,
      required: all.filter(isRequired).map((one) => `${one.in}.${one.name}`),
      ...(body && { body: body.plan }),
      ...(nextPage && { nextPage }),
    },
  }
}

const isRequired = ({ in: place, required }: Fields): boolean =>
  place === 'path' || required === true

/** Names of headers, query parameters and cookies with credentials, which arguments must never set. */
function credentialNames(document: OpenApiDocument): ReadonlySet<string> {
  const { components, securityDefinitions } = document.root
  const schemes = {
    ...fieldsOf(fieldsOf(components).securitySchemes),
    ...fieldsOf(securityDefinitions),
  }
  return new Set(
    Object.values(schemes).flatMap((one) => {
      const { type, in: place, name } = fieldsOf(document.resolve(one))
      return type === 'apiKey' ? [`${place} ${String(name).toLowerCase()}`] : []
    }),
  )
}

/** Headers of the connection, of credentials and of the gateway, which arguments must never set. */
const reservedHeaders =
  /^(accept|accept-encoding|authorization|connection|content-.*|cookie|expect|forwarded|host|keep-alive|proxy-.*|te|trailer|transfer-encoding|upgrade|via|x-forwarded-.*|x-real-ip|x-envoy-.*|mcp-.*)$/

function isReserved({ in: place, name }: Fields, credentials: ReadonlySet<string>): boolean {
  const lower = String(name).toLowerCase()
  if (credentials.has(`${place} ${lower}`)) return true
  return (
    place === 'header' && (reservedHeaders.test(lower) || !/^[!#$%&'*+.^_`|~0-9a-z-]+$/.test(lower))
  )
}

// Bodies ------------------------------------------------------------------------------------------

const formatOrder = ['json', 'form', 'multipart', 'text', 'bytes'] as const

/** @throws DocumentProblem if the operation has a body, but of no type that can be written */
function bodyOf(document: OpenApiDocument, operation: Fields, schemas: ToolSchemas) {
  if (operation.requestBody === undefined) return undefined
  const body = fieldsOf(document.resolve(operation.requestBody))
  const all = Object.entries(fieldsOf(body.content)).map(([type, media]) => {
    return { type, format: bodyFormatOf(type), media: fieldsOf(media) }
  })
  const chosen = formatOrder.flatMap((format) => all.filter((one) => one.format === format))[0]
  if (chosen?.format === undefined) {
    const types = all.map(({ type }) => type).join(', ')
    throw new DocumentProblem(`bodies of type ${types || 'none'} are not supported`)
  }
  const { format, type, media } = chosen
  const isBytes = format === 'bytes'
  const converted = isBytes ? { type: 'string' } : schemas.convert(media.schema ?? {})
  const description = [textIn(body.description), isBytes ? 'Base64 of the bytes.' : undefined]
  const text = description.filter((one) => one !== undefined).join(' ')
  const plan: BodyPlan = {
    format,
    type: type === '*/*' ? 'application/json' : type,
    required: body.required === true,
    members: membersOf(document, media),
  }
  const schema =
    text === '' || typeof converted === 'boolean'
      ? converted
      : { description: text, ...fieldsOf(converted) }
  return { schema, plan }
}

function membersOf(document: OpenApiDocument, media: Fields): Record<string, MemberPlan> {
  const { properties } = fieldsOf(document.resolve(media.schema))
  const encodings = fieldsOf(media.encoding)
  const members = Object.entries(fieldsOf(properties)).flatMap(([name, property]) => {
    const schema = fieldsOf(document.resolve(property))
    const items = fieldsOf(document.resolve(schema.items))
    const isBinary = [schema, items].some(isBinarySchema)
    const encoding = fieldsOf(encodings[name])
    const type = textIn(encoding.contentType)?.split(',', 1)[0]?.trim()
    const style = textIn(encoding.style) ?? 'form'
    const isDescribed = encoding.style !== undefined || encoding.explode !== undefined
    if (!isBinary && !isDescribed && type === undefined) return []
    const explode = typeof encoding.explode === 'boolean' ? encoding.explode : style === 'form'
    const allowReserved = encoding.allowReserved === true
    const isType = type !== undefined && /^[\w.+-]+\/[\w.+-]+$/.test(type)
    return [[name, { style, explode, allowReserved, isBinary, ...(isType && { type }) }] as const]
  })
  return Object.fromEntries(members)
}

const isBinarySchema = ({ format, contentMediaType, contentEncoding, type }: Fields): boolean =>
  (format === 'binary' && type !== 'object') ||
  (contentMediaType !== undefined && contentEncoding === undefined && type === undefined) ||
  contentEncoding === 'base64'

// Results -----------------------------------------------------------------------------------------

/** The schema of successful results, if they are JSON objects. */
function outputSchemaOf(document: OpenApiDocument, operation: Fields): Fields | undefined {
  const responses = Object.entries(fieldsOf(operation.responses))
  const success = responses.filter(([status]) => /^2/.test(status))
  const [only, ...more] = success
  if (only === undefined || more.length > 0) return undefined
  const { content } = fieldsOf(document.resolve(only[1]))
  const media = Object.entries(fieldsOf(content)).find(([type]) => bodyFormatOf(type) === 'json')
  const schema = fieldsOf(media?.[1]).schema
  if (fieldsOf(document.resolve(schema)).type !== 'object') return undefined
  const schemas = new ToolSchemas(document, 'response')
  const converted = fieldsOf(schemas.convert(document.resolve(schema)))
  return { ...converted, ...schemas.definitions() }
}
