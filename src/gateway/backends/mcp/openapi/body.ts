/** Writes bodies of requests: JSON, forms, multipart, text and bytes. */
import { isObject } from '../../../../ground/base/json-object.ts'
import { ArgumentProblem, type ParameterPlan, writePairs } from './serialize.ts'

type BodyFormat = 'json' | 'form' | 'multipart' | 'text' | 'bytes'

export interface BodyPlan {
  readonly format: BodyFormat
  /** Media type; that of multipart has no boundary. */
  readonly type: string
  readonly required: boolean
  /** How members of forms are written, by their names. */
  readonly members: Readonly<Record<string, MemberPlan>>
}

export interface MemberPlan {
  readonly style: string
  readonly explode: boolean
  readonly allowReserved: boolean
  /** Whether the value is base64 of the bytes. */
  readonly isBinary: boolean
  /** Media type of a part. */
  readonly type?: string
}

export interface WrittenBody {
  readonly type: string
  readonly bytes: Buffer
}

const defaultMember: MemberPlan = {
  style: 'form',
  explode: true,
  allowReserved: false,
  isBinary: false,
}

/** Returns the format of a media type; undefined if bodies of the type cannot be written. */
export function bodyFormatOf(type: string): BodyFormat | undefined {
  const plain = type.split(';', 1)[0]?.trim().toLowerCase() ?? ''
  if (plain === 'application/json' || plain.endsWith('+json') || plain === '*/*') return 'json'
  if (plain === 'application/x-www-form-urlencoded') return 'form'
  if (plain === 'multipart/form-data') return 'multipart'
  if (plain.startsWith('text/') || plain === 'application/xml') return 'text'
  if (/^(application\/octet-stream|application\/pdf|image\/.+|audio\/.+|video\/.+)$/.test(plain)) {
    return 'bytes'
  }
  return undefined
}

/** @throws ArgumentProblem */
export function writeBody(plan: BodyPlan, value: unknown, boundary: () => string): WrittenBody {
  const { format, type, members } = plan
  switch (format) {
    case 'json':
      return { type, bytes: Buffer.from(JSON.stringify(value)) }
    case 'text':
      return { type, bytes: Buffer.from(textOf(value, 'body')) }
    case 'bytes':
      return { type, bytes: bytesOf(value, 'body') }
    case 'form':
      return { type, bytes: Buffer.from(formText(value, members)) }
    case 'multipart': {
      const mark = boundary()
      const bytes = multipart(value, members, mark)
      return { type: `multipart/form-data; boundary=${mark}`, bytes }
    }
  }
}

function textOf(value: unknown, where: string): string {
  if (typeof value === 'string') return value
  throw new ArgumentProblem(`${where} must be a string`)
}

function bytesOf(value: unknown, where: string): Buffer {
  const text = textOf(value, where)
  if (!/^[A-Za-z0-9+/]*={0,2}$/.test(text) || text.length % 4 !== 0) {
    throw new ArgumentProblem(`${where} must be base64`)
  }
  return Buffer.from(text, 'base64')
}

function membersIn(value: unknown): [string, unknown][] {
  if (!isObject(value)) throw new ArgumentProblem('body must be an object')
  return Object.entries(value).filter(([, one]) => one !== undefined && one !== null)
}

const planIn = (members: BodyPlan['members'], name: string): MemberPlan =>
  (Object.hasOwn(members, name) ? members[name] : undefined) ?? defaultMember

function formText(value: unknown, members: BodyPlan['members']): string {
  return membersIn(value)
    .map(([name, one]) => {
      const own = planIn(members, name)
      // Objects in forms are JSON unless the document says how to write them.
      const isJson = isObject(one) && !Object.hasOwn(members, name)
      const plan: ParameterPlan = { ...own, name, in: 'query', isJson }
      return writePairs(plan, one)
    })
    .filter((pairs) => pairs !== '')
    .join('&')
}

/** Names in a part's head as the HTML standard escapes them, so that they cannot end it. */
const escapeName = (name: string): string =>
  name.replaceAll('"', '%22').replaceAll('\r', '%0D').replaceAll('\n', '%0A')

function multipart(value: unknown, members: BodyPlan['members'], boundary: string): Buffer {
  const parts = membersIn(value).flatMap(([name, one]) => {
    const plan = planIn(members, name)
    const items = Array.isArray(one) ? one : [one]
    return items.map((item) => partOf(name, item, plan, boundary))
  })
  return Buffer.concat([...parts, Buffer.from(`--${boundary}--\r\n`)])
}

function partOf(name: string, value: unknown, plan: MemberPlan, boundary: string): Buffer {
  const isJson = typeof value === 'object' && value !== null
  const type =
    plan.type ??
    (plan.isBinary ? 'application/octet-stream' : isJson ? 'application/json' : undefined)
  const file = plan.isBinary ? `; filename="${escapeName(name)}"` : ''
  const head = [
    `--${boundary}`,
    `content-disposition: form-data; name="${escapeName(name)}"${file}`,
    ...(type === undefined ? [] : [`content-type: ${type}`]),
  ]
  const content = plan.isBinary
    ? bytesOf(value, `body.${name}`)
    : Buffer.from(isJson ? JSON.stringify(value) : String(value))
  return Buffer.concat([Buffer.from(`${head.join('\r\n')}\r\n\r\n`), content, Buffer.from('\r\n')])
}
