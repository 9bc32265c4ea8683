/** Reads the input files of `sluice idp prepare`, and reads and writes its client file. */
import { accessSync, constants, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { UsageError } from '../shared/output.ts'

/**
 * Reads the file that an option names, as UTF-8.
 * @throws UsageError that names the option if the file cannot be read
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

/** A client that is registered at the identity provider. */
export interface RegisteredClient {
  /** Base address of the provider. */
  readonly url: string
  readonly realm: string
  readonly clientId: string
  /** The id that the provider assigned to the client. */
  readonly id: string
  /** Not set if the file was written by hand for an existing client. */
  readonly secret?: string
}

/**
 * Returns the client that an earlier run stored, or undefined if the file does not exist.
 * @throws UsageError if the file is not valid or is for another client
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
  if (typeof id !== 'string' || id === '') throw new UsageError(`${file}: 'id' must be a string`)
  return { ...wanted, id, ...(typeof secret === 'string' && { secret }) }
}

function parseObject(file: string, text: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(text)
    if (typeof value === 'object' && value !== null) return { ...value }
  } catch {
    // The parser's message is dropped, because it quotes the text, which may contain the secret.
  }
  throw new UsageError(`${file}: is not a JSON object`)
}

/** Called before the client is registered, because a secret that cannot be stored would be lost. */
function requireFolder(file: string): undefined {
  try {
    accessSync(dirname(file), constants.W_OK)
  } catch {
    throw new UsageError(`${file}: its folder does not exist or cannot be written`)
  }
}

/** Stores the client atomically, in a file that only its owner can read. */
export function writeClient(file: string, client: RegisteredClient): void {
  const fresh = `${file}.${process.pid}.tmp`
  writeFileSync(fresh, `${JSON.stringify(client, undefined, 2)}\n`, { mode: 0o600, flag: 'wx' })
  renameSync(fresh, file)
}
