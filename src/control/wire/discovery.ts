/**
 * The configuration stream between a controller and a remote proxy: the incremental aggregated discovery
 * service (delta xDS) with one resource type of our own. The messages are plain objects here;
 * proto/discovery/delta.proto defines their encoding.
 *
 * ```
 *   proxy                                   controller
 *     │── first request: node, versions ────────►│
 *     │◄── part 1, part 2, …, last part ─────────│   what differs
 *     │── ack of each part ─────────────────────►│   to the last one: applied, except …
 *     │◄── changes … ────────────────────────────│
 * ```
 */
import { create, fromBinary, type JsonObject, toBinary } from '@bufbuild/protobuf'
import { BinaryWriter, WireType } from '@bufbuild/protobuf/wire'
import {
  DeltaDiscoveryRequestSchema,
  DeltaDiscoveryResponseSchema,
  type Node,
} from '../../../proto/gen/discovery/delta_pb.ts'
import { RejectionsSchema } from '../../../proto/gen/resource_pb.ts'
import type { HolderReport } from '../../ground/model/budgets.ts'
import type { EndedEntry, EndedReport } from '../../ground/model/ended-sessions.ts'
import type { ListReport } from '../../ground/model/mcp-lists.ts'
import type { ObjectName } from '../../ground/model/names.ts'
import type { RecordReport } from '../../ground/model/record-report.ts'
import type { ResourceKey } from '../../ground/model/resources.ts'
import type { SeriesReport, StoredSeries } from '../../ground/model/series.ts'
import type { Rejection } from './channel.ts'
import { decodeEndedEntries, decodeEndedReport, encodeEnded } from './ended-sessions.ts'
import {
  type AddressedUpdate,
  decodeReport,
  decodeUpdate,
  encodeReport,
  encodeUpdate,
} from './ledger-messages.ts'
import { decodeListReport, encodeListReport } from './list-reports.ts'

/** gRPC path of the only method. */
export const deltaMethodPath =
  '/envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources'

export const resourceTypeUrl = 'type.googleapis.com/sluice.resource.v1.Resource'
const rejectionsTypeUrl = 'type.googleapis.com/sluice.resource.v1.Rejections'

/** The google.rpc code INVALID_ARGUMENT. */
const invalidArgument = 3

/** Maximum number of rejections in a request. */
const maxRejections = 1_000
/** Maximum number of characters in the reason of a rejection. */
const maxReasonLength = 1_024

/** The identity that a proxy sends to its controller. */
export interface ProxyNode {
  /** A stable name that no other proxy has. */
  readonly name: string
  readonly gateway: ObjectName
  /** Addresses at which the proxy serves traffic; empty if unknown. */
  readonly addresses: readonly string[]
  /** Version of the proxy software; empty if unknown. */
  readonly version: string
  /** Random text of the process, so that a duplicate name is told from a reconnect; not set by old proxies. */
  readonly instance?: string
  /** Whether the proxy understands messages about ended sessions; not set by old proxies. */
  readonly takesEnded?: boolean
}

/** A message from a proxy to its controller. */
export interface DeltaRequest {
  /** Set in the first request of a stream. */
  readonly node?: ProxyNode
  /** Position in the log of the last change set that the proxy received; set in the first request. */
  readonly position?: number
  /** A report of a holder of budgets; the message has nothing else. */
  readonly ledger?: HolderReport
  /** A report of what an MCP server lists; the message has nothing else. */
  readonly list?: ListReport
  /** Time series of the proxy; the message has nothing else. */
  readonly series?: SeriesReport
  /** Sessions of users that have ended; the message has nothing else. */
  readonly ended?: EndedReport
  /** Decision records of the proxy; the message has nothing else. */
  readonly records?: RecordReport
  /** Whether the proxy is shutting down; the message has nothing else. */
  readonly isLeaving?: boolean
  readonly typeUrl: string
  /** Versions that the proxy has, by key; set in the first request. An empty version matches no other. */
  readonly versions: ReadonlyMap<ResourceKey, string>
  /** Nonce of the response that this request acknowledges or rejects; empty in the first request. */
  readonly nonce: string
  /** The resources that the proxy has not applied; undefined if it has applied all. */
  readonly rejected?: ChangeSetRefusal
}

export interface ChangeSetRefusal {
  readonly rejections: readonly Rejection[]
  /** Number of further rejections that are not listed. */
  readonly omitted: number
  /** Summary for users. */
  readonly message: string
}

/** A received resource, with the bytes of its `Resource` message. */
export interface ReceivedResource {
  readonly key: ResourceKey
  readonly version: string
  readonly body: Uint8Array
}

/** A message from a controller to a proxy. */
export interface DeltaResponse {
  /** Position in the controller's log, as text. */
  readonly position: string
  readonly nonce: string
  /** An update of the ledger; the message has nothing else. */
  readonly ledger?: AddressedUpdate
  /** What the controller has of the time series; the message has nothing else. */
  readonly seriesStored?: StoredSeries
  /** Sessions and tokens that are refused; the message has nothing else. */
  readonly ended?: readonly EndedEntry[]
  readonly upserted: readonly ReceivedResource[]
  readonly removed: readonly ResourceKey[]
  /** Whether further responses of the same change set follow. */
  readonly isPartial: boolean
}

// Requests --------------------------------------------------------------------------------------

function textOf(metadata: JsonObject | undefined, name: string): string | undefined {
  const value = metadata?.[name]
  return typeof value === 'string' && value !== '' ? value : undefined
}

function nodeId({ name, addresses, gateway }: ProxyNode): string {
  const { namespace } = gateway
  const address = addresses[0] ?? ''
  return `sluice~${address}~${name}.${namespace}~${namespace}.svc.cluster.local`
}

function encodeNode(node: ProxyNode, position: number | undefined) {
  const { name, gateway, addresses, version, instance, takesEnded } = node
  return {
    id: nodeId(node),
    cluster: `${gateway.namespace}/${gateway.name}`,
    metadata: {
      NAME: name,
      NAMESPACE: gateway.namespace,
      GATEWAY_NAME: gateway.name,
      INSTANCE_IPS: addresses.join(','),
      role: `${gateway.namespace}~${gateway.name}`,
      ...(position !== undefined && { POSITION: String(position) }),
      ...(instance !== undefined && { PROCESS: instance }),
      ...(takesEnded === true && { ENDED_SESSIONS: '1' }),
    },
    userAgentName: 'sluice',
    userAgentVersion: version,
  }
}

/** Returns undefined if the node has no name or no Gateway. */
function decodeNode({ id, metadata, userAgentVersion }: Node): ProxyNode | undefined {
  const [namespace, gateway, ...rest] = (textOf(metadata, 'role') ?? '').split('~')
  const name = textOf(metadata, 'NAME') ?? id
  if (!namespace || !gateway || rest.length > 0 || name === '') return undefined
  const addresses = textOf(metadata, 'INSTANCE_IPS')?.split(',') ?? []
  const instance = textOf(metadata, 'PROCESS')
  return {
    name,
    gateway: { namespace, name: gateway },
    addresses,
    version: userAgentVersion,
    ...(instance !== undefined && { instance }),
    ...(textOf(metadata, 'ENDED_SESSIONS') !== undefined && { takesEnded: true }),
  }
}

function encodeRefusal({ rejections, omitted, message }: ChangeSetRefusal) {
  const listed = rejections.slice(0, maxRejections).map(({ key, code, message: reason }) => ({
    key,
    code,
    message: reason.slice(0, maxReasonLength),
  }))
  const more = omitted + rejections.length - listed.length
  const details = create(RejectionsSchema, { rejections: listed, omitted: more })
  return {
    code: invalidArgument,
    message: message.slice(0, maxReasonLength),
    details: [{ typeUrl: rejectionsTypeUrl, value: toBinary(RejectionsSchema, details) }],
  }
}

export function encodeRequest(request: DeltaRequest): Uint8Array<ArrayBuffer> {
  const { node, position, typeUrl, versions, nonce, rejected } = request
  const message = create(DeltaDiscoveryRequestSchema, {
    ...(node !== undefined && { node: encodeNode(node, position), resourceNamesSubscribe: ['*'] }),
    typeUrl,
    initialResourceVersions: Object.fromEntries(versions),
    responseNonce: nonce,
    ...(rejected !== undefined && { errorDetail: encodeRefusal(rejected) }),
  })
  return toBinary(DeltaDiscoveryRequestSchema, message)
}

/** @throws if the bytes are not a valid request. */
export function decodeRequest(bytes: Uint8Array): DeltaRequest {
  const message = fromBinary(DeltaDiscoveryRequestSchema, bytes)
  const { node, typeUrl, initialResourceVersions, responseNonce: nonce, errorDetail } = message
  const { ledgerReport, listReport, seriesReport, endedReport, recordReport, isLeaving } = message
  const known = node === undefined ? undefined : decodeNode(node)
  const position = Number(textOf(node?.metadata, 'POSITION') ?? Number.NaN)
  const detail = errorDetail?.details.find((any) => any.typeUrl === rejectionsTypeUrl)
  const refused = detail && fromBinary(RejectionsSchema, detail.value)
  return {
    ...(known !== undefined && { node: known }),
    ...(Number.isSafeInteger(position) && { position }),
    ...(ledgerReport.length > 0 && { ledger: decodeReport(ledgerReport) }),
    ...(listReport.length > 0 && { list: decodeListReport(listReport) }),
    ...(seriesReport !== undefined && {
      series: { periodMs: seriesReport.periodMs, frames: seriesReport.frames },
    }),
    ...(endedReport.length > 0 && { ended: decodeEndedReport(endedReport) }),
    ...(recordReport !== undefined && {
      records: { block: recordReport.block, isRepeated: recordReport.isRepeated },
    }),
    ...(isLeaving && { isLeaving }),
    typeUrl,
    versions: new Map(Object.entries(initialResourceVersions)),
    nonce,
    ...(errorDetail !== undefined && {
      rejected: {
        rejections: (refused?.rejections ?? []).map(({ key, code, message: reason }) => ({
          key,
          code,
          message: reason,
        })),
        omitted: refused?.omitted ?? 0,
        message: errorDetail.message,
      },
    }),
  }
}

/** Encodes a report of a holder of budgets. */
export const encodeLedgerRequest = (report: HolderReport): Uint8Array<ArrayBuffer> =>
  toBinary(
    DeltaDiscoveryRequestSchema,
    create(DeltaDiscoveryRequestSchema, { ledgerReport: encodeReport(report) }),
  )

/** Encodes a report of what an MCP server lists. */
export const encodeListRequest = (report: ListReport): Uint8Array<ArrayBuffer> =>
  toBinary(
    DeltaDiscoveryRequestSchema,
    create(DeltaDiscoveryRequestSchema, { listReport: encodeListReport(report) }),
  )

/** Encodes a report of sessions that have ended. */
export const encodeEndedRequest = (report: EndedReport): Uint8Array<ArrayBuffer> =>
  toBinary(
    DeltaDiscoveryRequestSchema,
    create(DeltaDiscoveryRequestSchema, { endedReport: encodeEnded(report) }),
  )

export const encodeRecordRequest = (recordReport: RecordReport): Uint8Array<ArrayBuffer> =>
  toBinary(DeltaDiscoveryRequestSchema, create(DeltaDiscoveryRequestSchema, { recordReport }))

export const encodeSeriesRequest = (seriesReport: SeriesReport): Uint8Array<ArrayBuffer> =>
  toBinary(DeltaDiscoveryRequestSchema, create(DeltaDiscoveryRequestSchema, { seriesReport }))

/** Encodes the message of a proxy that is shutting down. */
export const encodeLeavingRequest = (): Uint8Array<ArrayBuffer> =>
  toBinary(DeltaDiscoveryRequestSchema, create(DeltaDiscoveryRequestSchema, { isLeaving: true }))

// Responses -------------------------------------------------------------------------------------

/** Field numbers of proto/discovery/delta.proto, for messages that are encoded by hand. */
const anyField = { typeUrl: 1, value: 2 } as const
const resourceField = { version: 1, resource: 2, name: 3 } as const
const responseField = {
  position: 1,
  resources: 2,
  typeUrl: 4,
  nonce: 5,
  removed: 6,
  isPartial: 50_001,
} as const

/** One encoded `Resource` of a response. It is encoded once per version and shared by all streams. */
export type DiscoveryPiece = Uint8Array

export function encodePiece(key: ResourceKey, version: string, body: Uint8Array): DiscoveryPiece {
  const any = new BinaryWriter()
    .tag(anyField.typeUrl, WireType.LengthDelimited)
    .string(resourceTypeUrl)
    .tag(anyField.value, WireType.LengthDelimited)
    .bytes(body)
    .finish()
  return new BinaryWriter()
    .tag(resourceField.version, WireType.LengthDelimited)
    .string(version)
    .tag(resourceField.resource, WireType.LengthDelimited)
    .bytes(any)
    .tag(resourceField.name, WireType.LengthDelimited)
    .string(key)
    .finish()
}

/** The contents of a response. */
interface ResponseParts {
  readonly position: number
  readonly nonce: string
  readonly pieces: Iterable<DiscoveryPiece>
  readonly removed: Iterable<ResourceKey>
  readonly isPartial: boolean
}

/** Builds a DeltaDiscoveryResponse from encoded resources. */
export function assembleResponse(parts: ResponseParts): Uint8Array<ArrayBuffer> {
  const writer = new BinaryWriter()
    .tag(responseField.position, WireType.LengthDelimited)
    .string(String(parts.position))
  for (const piece of parts.pieces) {
    writer.tag(responseField.resources, WireType.LengthDelimited).bytes(piece)
  }
  writer.tag(responseField.typeUrl, WireType.LengthDelimited).string(resourceTypeUrl)
  writer.tag(responseField.nonce, WireType.LengthDelimited).string(parts.nonce)
  for (const key of parts.removed) {
    writer.tag(responseField.removed, WireType.LengthDelimited).string(key)
  }
  if (parts.isPartial) writer.tag(responseField.isPartial, WireType.Varint).bool(true)
  return writer.finish()
}

/** Encodes an update of the ledger of budgets. */
export const encodeLedgerResponse = (update: AddressedUpdate): Uint8Array<ArrayBuffer> =>
  toBinary(
    DeltaDiscoveryResponseSchema,
    create(DeltaDiscoveryResponseSchema, { ledgerUpdate: encodeUpdate(update) }),
  )

export const encodeSeriesResponse = (stored: StoredSeries): Uint8Array<ArrayBuffer> => {
  const endMs = Object.fromEntries([...stored].map(([period, end]) => [period, BigInt(end)]))
  return toBinary(
    DeltaDiscoveryResponseSchema,
    create(DeltaDiscoveryResponseSchema, { seriesStored: { endMs } }),
  )
}

/** Encodes sessions and tokens that are refused. */
export const encodeEndedResponse = (entries: readonly EndedEntry[]): Uint8Array<ArrayBuffer> =>
  toBinary(
    DeltaDiscoveryResponseSchema,
    create(DeltaDiscoveryResponseSchema, { endedSessions: encodeEnded(entries) }),
  )

const decodeStored = (endMs: Readonly<Record<string, bigint>>): StoredSeries =>
  new Map(Object.entries(endMs).map(([period, end]) => [Number(period), Number(end)]))

/** @throws if the bytes are not a valid response. */
export function decodeResponse(bytes: Uint8Array): DeltaResponse {
  const message = fromBinary(DeltaDiscoveryResponseSchema, bytes)
  return {
    ...(message.ledgerUpdate.length > 0 && { ledger: decodeUpdate(message.ledgerUpdate) }),
    ...(message.seriesStored !== undefined && {
      seriesStored: decodeStored(message.seriesStored.endMs),
    }),
    ...(message.endedSessions.length > 0 && { ended: decodeEndedEntries(message.endedSessions) }),
    position: message.systemVersionInfo,
    nonce: message.nonce,
    upserted: message.resources.map(({ name, version, resource }) => ({
      key: name,
      version,
      body: resource?.value ?? new Uint8Array(),
    })),
    removed: message.removedResources,
    isPartial: message.isPartial,
  }
}
