/** Reads the file of users: a list in YAML or JSON. */
import { parse } from 'yaml'
import * as shape from '../../../ground/base/shape.ts'
import { UsageError } from '../shared/output.ts'
import { readInput } from './files.ts'
import type { Credentials } from './http.ts'

type Attributes = Readonly<Record<string, string | readonly string[]>>

/** A user as it is sent to the identity provider. */
export interface NewUser {
  readonly username: string
  readonly email: string
  readonly firstName: string
  readonly lastName: string
  readonly enabled: boolean
  readonly attributes: Attributes
  readonly credentials: readonly {
    readonly type: 'password'
    readonly value: string
    readonly temporary: false
  }[]
}

/** An entry of the file of users. */
interface UserEntry extends Omit<NewUser, 'enabled' | 'attributes' | 'credentials'> {
  readonly enabled?: boolean
  /** Shorthand for the attribute `group`. */
  readonly group?: string
  readonly attributes?: Attributes
  readonly password?: string
  /** Name of the environment variable that contains the password. */
  readonly passwordEnv?: string
}

const filled = shape.where(shape.text, 'a string that is not empty', (value) => value !== '')

const usersShape = shape.list(
  shape.where(
    shape.record<UserEntry>({
      username: filled,
      email: filled,
      firstName: filled,
      lastName: filled,
      enabled: shape.optional(shape.flag),
      group: shape.optional(filled),
      attributes: shape.optional(shape.map(shape.either(shape.text, shape.list(shape.text)))),
      password: shape.optional(filled),
      passwordEnv: shape.optional(filled),
    }),
    'exactly one of password and passwordEnv',
    ({ password, passwordEnv }) => (password === undefined) !== (passwordEnv === undefined),
  ),
)

function parseUsers(file: string): readonly UserEntry[] {
  const text = readInput('--users-file', file)
  let entries: unknown
  try {
    entries = parse(text, { prettyErrors: false, logLevel: 'error' })
  } catch {
    // The parser's message is dropped, because it quotes the text, which may contain a password.
    throw new UsageError(`${file}: is neither YAML nor JSON`)
  }
  const problem = shape.problemOf(usersShape, entries)
  if (problem !== undefined) throw new UsageError(`${file}: ${problem}`)
  return entries as readonly UserEntry[]
}

/**
 * Reads the users of a file and adds their passwords to `credentials`.
 * @throws UsageError that names file, entry and field but never repeats a value
 */
export function readUsers(file: string, credentials: Credentials): NewUser[] {
  const names = new Set<string>()
  return parseUsers(file).map((entry, index) => {
    const { group, password, passwordEnv = '', enabled = true, attributes, ...user } = entry
    const refuse = (text: string) => new UsageError(`${file}: [${index}].${text}`)
    if (names.has(user.username)) throw refuse('username: is given twice')
    names.add(user.username)
    const value = password ?? process.env[passwordEnv]
    if (!value) throw refuse(`passwordEnv: the environment variable ${passwordEnv} is not set`)
    return {
      ...user,
      enabled,
      attributes: { ...attributes, ...(group !== undefined && { group }) },
      credentials: [{ type: 'password', value: credentials.add(value), temporary: false }],
    }
  })
}
