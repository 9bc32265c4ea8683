/** Files of a preparation: what is read, and the one that is written. */
import { accessSync, constants, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { UsageError } from '../output.ts'

/**
 * Reads the file that an option names, as UTF-8.
 * @throws UsageError naming the option where it cannot be read
 */
export function readInput(option: string, file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    throw new UsageError(
      `${option}: ${file}: ${(error as NodeJS.ErrnoException).code ?? 'cannot be read'}`,
    )
  }
}

/** A client as the identity provider knows it. */
export interface RegisteredClient {
  /** Base address and realm that it belongs to. */
  readonly url: string
  readonly realm: string
  readonly clientId: string
  /** The provider's own id, by which admin endpoints name the client. */
  readonly id: string
  /** Absent where the file was written by hand for a client that existed before. */
  readonly secret?: string
}

/**
 * The client that an earlier run has written down; undefined where there was none.
 * @throws UsageError where the file holds something else, or another client
 */
export function readClient(
  file: string,
  wanted: Pick<RegisteredClient, 'url' | 'realm' | 'clientId'>,
): RegisteredClient | undefined {
  let text: string
  try {
    text = readFileSync(file, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return requireFolder(file)
    throw new UsageError(`${file}: ${(error as NodeJS.ErrnoException).code ?? 'cannot be read'}`)
  }
  const given = parseObject(file, text)
  for (const field of ['url', 'realm', 'clientId'] as const) {
    if (given[field] === wanted[field]) continue
    throw new UsageError(
      `${file}: '${field}' is not '${wanted[field]}'; give another --client-file for another client`,
    )
  }
  const { id, secret } = given
  if (typeof id !== 'string' || id === '') throw new UsageError(`${file}: 'id' must be a text`)
  return { ...wanted, id, ...(typeof secret === 'string' && { secret }) }
}

function parseObject(file: string, text: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(text)
    if (typeof value === 'object' && value !== null) return { ...value }
  } catch {
    // Told below: the parser's message would quote the text, and with it perhaps the secret.
  }
  throw new UsageError(`${file}: is no JSON object`)
}

/** Found out before anything is changed: a secret that cannot be written down would be lost. */
function requireFolder(file: string): undefined {
  try {
    accessSync(dirname(file), constants.W_OK)
  } catch {
    throw new UsageError(`${file}: its folder does not exist or cannot be written`)
  }
}

/** Writes the client down in one step, readable by its owner only. */
export function writeClient(file: string, client: RegisteredClient): void {
  const fresh = `${file}.${process.pid}.tmp`
  writeFileSync(fresh, `${JSON.stringify(client, undefined, 2)}\n`, { mode: 0o600, flag: 'wx' })
  renameSync(fresh, file)
}
