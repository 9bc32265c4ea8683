/** TLS of the configuration server, renewed while it runs. */
import { createPrivateKey, X509Certificate } from 'node:crypto'
import { readFileSync, watch } from 'node:fs'
import { dirname } from 'node:path'
import { createSecureContext } from 'node:tls'
import { ServerCredentials } from '@grpc/grpc-js'

/** A certificate chain, leaf first, and its private key; PEM. */
interface TlsPair {
  readonly certificate: string | Uint8Array
  readonly privateKey: string | Uint8Array
}

/** Where the pair comes from. */
export interface TlsSource {
  current(): TlsPair
  /** Calls back after each change; returns the end of it. */
  onChange(renew: (pair: TlsPair) => void): () => void
}

const contextOf = ({ certificate, privateKey }: TlsPair) => ({
  cert: Buffer.from(certificate),
  key: Buffer.from(privateKey),
  minVersion: 'TLSv1.2' as const,
})

/** Why a pair cannot be used; undefined where it can. */
export function tlsProblem(pair: TlsPair): string | undefined {
  try {
    const leaf = new X509Certificate(Buffer.from(pair.certificate))
    if (!leaf.checkPrivateKey(createPrivateKey(Buffer.from(pair.privateKey)))) {
      return 'the private key does not belong to the certificate'
    }
    createSecureContext(contextOf(pair))
    return undefined
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
}

/** Credentials whose pair can be replaced: new connections get the new one, open ones go on. */
export class RenewableCredentials extends ServerCredentials {
  constructor(pair: TlsPair) {
    super({ minVersion: 'TLSv1.2' }, contextOf(pair))
  }

  renew(pair: TlsPair): void {
    this.updateSecureContextOptions(contextOf(pair))
  }

  override _equals(other: ServerCredentials): boolean {
    return other === this
  }
}

/** So long after the first sign of a change several files of a folder have been written. */
const settleMs = 100

/**
 * Looks whenever something in a folder changes, and every `everyMs` all the same: Secrets are mounted
 * by replacing a symbolic link in their folder, which watchers of the files miss, and some file
 * systems tell nothing. Returns the end of it.
 */
export function followFolder(folder: string, look: () => void, everyMs = 5_000): () => void {
  let soon: NodeJS.Timeout | undefined
  const timer = setInterval(look, everyMs).unref()
  const onEvent = () => {
    soon ??= setTimeout(() => {
      soon = undefined
      look()
    }, settleMs).unref()
  }
  const watcher = watchOrNothing(folder, onEvent)
  return () => {
    clearInterval(timer)
    clearTimeout(soon)
    watcher?.close()
  }
}

function watchOrNothing(folder: string, onEvent: () => void) {
  try {
    const watcher = watch(folder, { persistent: false }, onEvent)
    watcher.on('error', () => watcher.close())
    return watcher
  } catch {
    return undefined
  }
}

/**
 * A pair in two files of one folder, read again when they change. A pair that cannot be used leaves the one before it in use.
 * @throws where the files cannot be read or do not hold a pair now.
 */
export function tlsFiles(
  certificatePath: string,
  keyPath: string,
  options: { readonly everyMs?: number; readonly onProblem?: (text: string) => void } = {},
): TlsSource {
  const read = (): TlsPair => ({
    certificate: readFileSync(certificatePath, 'utf8'),
    privateKey: readFileSync(keyPath, 'utf8'),
  })
  let known = read()
  const problem = tlsProblem(known)
  if (problem !== undefined) throw new Error(`${certificatePath}, ${keyPath}: ${problem}`)
  const look = (renew: (pair: TlsPair) => void) => {
    try {
      const pair = read()
      if (pair.certificate === known.certificate && pair.privateKey === known.privateKey) return
      known = pair
      renew(pair)
    } catch (error) {
      options.onProblem?.(`${certificatePath}: ${error instanceof Error ? error.message : error}`)
    }
  }
  return {
    current: () => known,
    onChange: (renew) => {
      return followFolder(dirname(certificatePath), () => look(renew), options.everyMs)
    },
  }
}
