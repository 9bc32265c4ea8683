/** The log records that a collector was sent (OTLP), as plain data. */
import { fromBinary } from '@bufbuild/protobuf'
import {
  ExportLogsServiceRequestSchema,
  type LogRecord,
} from '../../proto/gen/called/otlp_logs_pb.ts'
import { plain } from './collected-spans.ts'
import { waitFor } from './wait-for.ts'

interface ReceivedLog {
  readonly resource: Record<string, unknown>
  readonly record: LogRecord
  readonly attributes: Record<string, unknown>
}

export class CollectedLogs {
  readonly records: ReceivedLog[] = []
  /** URLs of requests over HTTP. */
  readonly urls = new Set<string>()

  take(body: Uint8Array, url?: string): void {
    if (url !== undefined) this.urls.add(url)
    const { resourceLogs } = fromBinary(ExportLogsServiceRequestSchema, body)
    for (const { resource, scopeLogs } of resourceLogs) {
      for (const record of scopeLogs.flatMap(({ logRecords }) => logRecords)) {
        const attributes = plain(record.attributes)
        this.records.push({ resource: plain(resource?.attributes ?? []), record, attributes })
      }
    }
  }

  /** The entry with this attribute, once it has come. */
  with(name: string, value: unknown): Promise<ReceivedLog> {
    return waitFor(`an entry with ${name}=${value}`, () =>
      this.records.find(({ attributes }) => attributes[name] === value),
    )
  }
}
