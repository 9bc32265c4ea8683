/** All rows of the recorded traffic. */
import type { Case } from '../case.ts'
import { connections, upgrades } from './connections.ts'
import { fields, hopByHop } from './fields.ts'
import { requestFraming, responseFraming } from './framing.ts'
import { http2 } from './http2.ts'
import { expect, interim, methods, ranges, trailers, versions } from './messages.ts'
import { changes, hosts, paths, redirects, rewrites, routing } from './routing.ts'

export const cases: readonly Case[] = [
  ...[routing, hosts, paths, redirects, rewrites, changes].flat(),
  ...[fields, hopByHop, requestFraming, responseFraming].flat(),
  ...[interim, expect, trailers, ranges, methods, versions].flat(),
  ...[connections, upgrades, http2].flat(),
]
