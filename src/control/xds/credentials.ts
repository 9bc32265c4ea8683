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

/** Provides a pair that may change. */
export interface TlsSource {
  current(): TlsPair
  /** Calls `renew` after each change. Returns a function that stops these calls. */
  onChange(renew: (pair: TlsPair) => void): () => void
}

const contextOf = ({ certificate, privateKey }: TlsPair) => ({
  cert: Buffer.from(certificate),
  key: Buffer.from(privateKey),
  minVersion: 'TLSv1.2' as const,
})

/** Returns why a pair cannot be used, or undefined if it can. */
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

/** Credentials whose pair can be replaced for new connections; open ones continue. */
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

/** Delay after the first notification, so that all files of a folder are written before the check. */
const settleMs = 100

/**
 * Calls `check` whenever something in a folder changes, and every `everyMs`, since some file systems send no
 * notifications. A mounted Secret replaces a link in its folder, which a watch on a file would miss. Returns
 * a function that stops the calls.
 */
export function followFolder(folder: string, check: () => void, everyMs = 5_000): () => void {
  let soon: NodeJS.Timeout | undefined
  const timer = setInterval(check, everyMs).unref()
  const onEvent = () => {
    soon ??= setTimeout(() => {
      soon = undefined
      check()
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
 * Provides a pair from two files of one folder, and reads them again when they change.
 * @throws if the files cannot be read or have no valid pair now
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
  const check = (renew: (pair: TlsPair) => void) => {
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
      return followFolder(dirname(certificatePath), () => check(renew), options.everyMs)
    },
  }
}
