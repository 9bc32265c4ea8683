/** Stores the lease in an entry of a NATS key-value bucket, for replicas without Kubernetes. */
import { NatsRecord } from '../log/nats-record.ts'
import type { LeaseRecord, LeaseStore } from './lease.ts'

/** Name of the bucket, which is created on first use. */
const leaseBucket = 'SLUICE_LEASES'

/** Key of the entry. */
const leaseName = 'sluice'

export class NatsLeaseStore implements LeaseStore {
  readonly #record: NatsRecord

  /** `servers` are the NATS servers of the log. */
  constructor(servers: string) {
    this.#record = new NatsRecord({ servers, bucket: leaseBucket, key: leaseName })
  }

  async read(timeoutMs: number): Promise<LeaseRecord | undefined> {
    const found = await this.#record.read(timeoutMs)
    return found && parse(found.text, found.revision)
  }

  async write(
    before: LeaseRecord | undefined,
    content: Omit<LeaseRecord, 'version'>,
    timeoutMs: number,
  ): Promise<LeaseRecord | undefined> {
    const expected = Number(before?.version ?? 0)
    const revision = await this.#record.write(JSON.stringify(content), expected, timeoutMs)
    return revision === undefined ? undefined : { ...content, version: `${revision}` }
  }

  close(): Promise<void> {
    return this.#record.close()
  }
}

/** Reads the record of an entry. An entry that is not a lease counts as a free one and is replaced. */
function parse(text: string, revision: number): LeaseRecord {
  const version = `${revision}`
  try {
    const { holder, durationMs, epoch } = JSON.parse(text) as Partial<LeaseRecord>
    return {
      version,
      ...(typeof holder === 'string' && { holder }),
      durationMs: typeof durationMs === 'number' ? durationMs : 0,
      epoch: typeof epoch === 'number' ? epoch : 0,
    }
  } catch {
    return { version, durationMs: 0, epoch: 0 }
  }
}
