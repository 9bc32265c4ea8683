/**
 * Texts that say which user a link, or the answer of an authorization server, is for. They are sealed, so that no one can
 * make or read them, and are worth nothing for other users: the page compares them with who is signed in.
 */
import type { UserGrants } from './user-grants.ts'

/** How long a link, or a sign-in at the service, is valid. */
const validMs = 600_000

interface Ticket {
  /** Digest of the principal. */
  readonly owner: string
  readonly at: number
  /** The PKCE verifier of a state. */
  readonly verifier?: string
}

/** Returns undefined if the gateway does not have its key yet. */
export function sealTicket(
  { keyring, id }: UserGrants,
  kind: 'link' | 'state',
  ticket: Omit<Ticket, 'at'>,
): string | undefined {
  const text = JSON.stringify({ ...ticket, at: Date.now() })
  return keyring()?.seal(text, `consent ${kind} ${id}`)
}

/** Returns undefined if the text is none of ours, or too old. */
export function openTicket(
  { keyring, id }: UserGrants,
  kind: 'link' | 'state',
  text: string,
): Ticket | undefined {
  const plain = keyring()?.open(text, `consent ${kind} ${id}`)
  if (plain === undefined) return undefined
  const ticket = JSON.parse(plain.toString()) as Ticket
  return Date.now() - ticket.at < validMs ? ticket : undefined
}
