/** The file of users: YAML or JSON, a list. */
import { parse } from 'yaml'
import { UsageError } from '../output.ts'
import { readInput } from './files.ts'
import type { Credentials } from './problem.ts'

/** As it is sent to the identity provider. */
export interface NewUser {
  readonly username: string
  readonly email: string
  readonly firstName: string
  readonly lastName: string
  readonly enabled: boolean
  readonly attributes: Readonly<Record<string, string | readonly string[]>>
  readonly credentials: readonly {
    readonly type: 'password'
    readonly value: string
    readonly temporary: false
  }[]
}

type Fields = Readonly<Record<string, unknown>>

const fields = new Set([
  'username',
  'email',
  'firstName',
  'lastName',
  'enabled',
  'group',
  'attributes',
  'password',
  'passwordEnv',
])

class UserFields {
  readonly #where: string
  readonly #given: Fields

  constructor(where: string, given: unknown) {
    this.#where = where
    if (typeof given !== 'object' || given === null || Array.isArray(given)) {
      throw new UsageError(`${where}: must be an object`)
    }
    this.#given = given as Fields
    const unknown = Object.keys(given).find((field) => !fields.has(field))
    if (unknown !== undefined) {
      throw new UsageError(`${where}.${unknown}: unknown; known are ${[...fields].join(', ')}`)
    }
  }

  text(field: string): string | undefined {
    const value = this.#given[field]
    if (value === undefined) return undefined
    if (typeof value === 'string' && value !== '') return value
    throw this.#wrong(field, 'must be a text that is not empty')
  }

  required(field: string): string {
    const value = this.text(field)
    if (value === undefined) throw this.#wrong(field, 'is required')
    return value
  }

  flag(field: string, absent: boolean): boolean {
    const value = this.#given[field] ?? absent
    if (typeof value === 'boolean') return value
    throw this.#wrong(field, 'must be true or false')
  }

  attributes(): Record<string, string | readonly string[]> {
    const given = this.#given.attributes ?? {}
    if (typeof given !== 'object' || Array.isArray(given)) {
      throw this.#wrong('attributes', 'must be an object')
    }
    const isText = (value: unknown) => typeof value === 'string'
    for (const [name, value] of Object.entries(given as Fields)) {
      if (isText(value) || (Array.isArray(value) && value.every(isText))) continue
      throw this.#wrong(`attributes.${name}`, 'must be a text or a list of texts')
    }
    const group = this.text('group')
    return { ...(given as Record<string, string>), ...(group !== undefined && { group }) }
  }

  /** Given in the file, or as the name of an environment variable. */
  password(): string {
    const variable = this.text('passwordEnv')
    const given = this.text('password')
    if ((variable === undefined) === (given === undefined)) {
      throw this.#wrong('password', 'give exactly one of password and passwordEnv')
    }
    const value = given ?? process.env[variable ?? '']
    if (value) return value
    throw this.#wrong('passwordEnv', `the environment variable ${variable} is not set`)
  }

  #wrong(field: string, what: string): UsageError {
    return new UsageError(`${this.#where}.${field}: ${what}`)
  }
}

/**
 * Reads the users of a file; their passwords become known credentials.
 * @throws UsageError naming file, entry and field; it never repeats a value
 */
export function readUsers(file: string, credentials: Credentials): NewUser[] {
  const entries = parseList(file)
  const names = new Set<string>()
  return entries.map((entry, index) => {
    const where = `${file}: [${index}]`
    const given = new UserFields(where, entry)
    const username = given.required('username')
    if (names.has(username)) throw new UsageError(`${where}.username: is given twice`)
    names.add(username)
    return {
      username,
      email: given.required('email'),
      firstName: given.required('firstName'),
      lastName: given.required('lastName'),
      enabled: given.flag('enabled', true),
      attributes: given.attributes(),
      credentials: [
        { type: 'password', value: credentials.add(given.password()), temporary: false },
      ],
    }
  })
}

function parseList(file: string): unknown[] {
  let entries: unknown
  try {
    entries = parse(readInput('--users-file', file), { prettyErrors: false, logLevel: 'error' })
  } catch (error) {
    if (error instanceof UsageError) throw error
    // The parser's message quotes the text, and with it perhaps a password.
    throw new UsageError(`${file}: is neither YAML nor JSON`)
  }
  if (Array.isArray(entries)) return entries
  throw new UsageError(`${file}: must be a list of users`)
}
