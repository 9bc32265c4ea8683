/** Ids that the gateway makes. */
import { randomBytes } from 'node:crypto'

export const newId = (): string => randomBytes(12).toString('hex')

/** Returns the id of a request that the gateway sends by itself, as JSON. */
export const gatewayRequestId = (name = newId()): string => JSON.stringify(`sluice/${name}`)
