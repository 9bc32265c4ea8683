import { create, type JsonObject, type MessageInitShape, toBinary } from '@bufbuild/protobuf'
import { ProcessingRequestSchema } from '../../../../proto/gen/called/ext_proc_pb.ts'
import type { GrpcStream } from '../../../ground/exchange/exchange.ts'
import type { ExchangeModes } from './modes.ts'

type Sent = MessageInitShape<typeof ProcessingRequestSchema>
export type SentPart = NonNullable<Sent['request']>

/** Values by the name of the Envoy filter that they belong to. */
export type FilterValues = Readonly<Record<string, JsonObject>>

/** What a processor gets with the headers of a message. */
export interface SentContext {
  readonly metadata?: FilterValues | undefined
  readonly attributes?: FilterValues | undefined
}

/** Writes the messages of one stream to a processor. */
export class MessageWriter {
  readonly #stream: GrpcStream
  readonly #modes: ExchangeModes
  readonly #isObservation: boolean
  #isFirst = true

  constructor(stream: GrpcStream, modes: ExchangeModes, isObservation = false) {
    this.#stream = stream
    this.#modes = modes
    this.#isObservation = isObservation
  }

  /** Returns false if the processor is slow. */
  write(request: SentPart, { metadata, attributes }: SentContext = {}): boolean {
    const message: Sent = {
      request,
      ...(metadata && { metadataContext: { filterMetadata: { ...metadata } } }),
      ...(attributes && { attributes: { ...attributes } }),
      ...(this.#isObservation && { observabilityMode: true }),
      ...(this.#isFirst && {
        protocolConfig: {
          requestBodyMode: this.#modes.request.body,
          responseBodyMode: this.#modes.response.body,
        },
      }),
    }
    this.#isFirst = false
    return this.#stream.send(
      toBinary(ProcessingRequestSchema, create(ProcessingRequestSchema, message)),
    )
  }
}
