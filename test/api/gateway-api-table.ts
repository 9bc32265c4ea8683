import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse } from 'yaml'

/** A spec that the Gateway API accepts or refuses; see cases/gateway-api.yaml. */
export interface GatewayApiRow {
  readonly written: string
  readonly spec: object
  readonly refusedAt?: string
  readonly also?: readonly string[]
  readonly message?: string
}

export const gatewayGroup = 'gateway.networking.k8s.io'

/** The rows by kind. */
export const gatewayApiTable = parse(
  readFileSync(join(import.meta.dirname, 'cases', 'gateway-api.yaml'), 'utf8'),
) as Readonly<Record<string, readonly GatewayApiRow[]>>

/** The object of a row, as a user would write it. */
export function gatewayObject(kind: string, spec: object, version = 'v1') {
  return { apiVersion: `${gatewayGroup}/${version}`, kind, metadata: { name: 'a' }, spec }
}
