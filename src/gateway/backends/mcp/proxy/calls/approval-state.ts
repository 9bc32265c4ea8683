/** The state of a call of a modern client that waits for an approval, which travels in its `requestState`. */
import { hash } from 'node:crypto'
import { canonicalJson } from '../../../../../ground/base/canonical.ts'
import { Seal } from '../../../../../ground/secrets/seal.ts'

export interface ApprovalState {
  /** `asked`: the client was asked. `approved`: the call was approved, and its server has asked something. */
  readonly phase: 'asked' | 'approved'
  /** Names the state, so that it is used once. */
  readonly id: string
  /** Digest of the call: its client, its target, and everything that was approved. */
  readonly call: string
  /** In milliseconds since the epoch. */
  readonly expiresAt: number
  /** JSON of the server's own state. */
  readonly inner?: string
}

/** The call that an approval is for. A client cannot use the approval for another call. */
interface ApprovedCall {
  readonly backend: string
  readonly identity: string
  readonly target: string
  readonly tool: string
  readonly args: unknown
}

export function approvalDigest({ backend, identity, target, tool, args }: ApprovedCall): string {
  const text = canonicalJson([backend, identity, target, tool, args ?? null])
  return hash('sha256', text, 'base64url')
}

/** Version of the encrypted format. */
const formatVersion = 1
const context = 'approval'

let current: { readonly secret: Uint8Array; readonly seal: Seal } | undefined

function sealOf(secret: Uint8Array): Seal {
  if (current?.secret !== secret) {
    current = { secret, seal: new Seal('sluice mcp approvals', secret) }
  }
  return current.seal
}

/** Encrypts and authenticates the state with the key that all proxies share. */
export function sealApproval(state: ApprovalState, secret: Uint8Array): string {
  return sealOf(secret).seal(JSON.stringify([formatVersion, state]), context)
}

/** Returns undefined if the text is not a state of the gateway; it may be one of a server. */
export function openApproval(text: string, secret: Uint8Array): ApprovalState | undefined {
  // Different base64 texts can decode to the same bytes. Only the text that was made is valid.
  if (Buffer.from(text, 'base64url').toString('base64url') !== text) return undefined
  const plain = sealOf(secret).open(text, context)
  if (plain === undefined) return undefined
  const [form, state] = JSON.parse(plain.toString()) as [number, ApprovalState]
  return form === formatVersion ? state : undefined
}
