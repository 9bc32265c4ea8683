/** An entry of a key-value bucket of NATS as the lease, for replicas without Kubernetes. */
import { NatsRecord } from '../log/nats-record.ts'
import type { Lease, LeaseOptions } from './lease.ts'
import { type LeaseRecord, type LeaseStore, RecordLease } from './record-lease.ts'

interface NatsLeaseOptions extends LeaseOptions {
  /** As of the log. */
  readonly servers: string
  readonly isGone?: (holder: string) => boolean
}

/** The bucket; made on first use. */
const leaseBucket = 'SLUICE_LEASES'

/** Name of the entry. */
const leaseName = 'sluice'

export function openNatsLease({ servers, ...options }: NatsLeaseOptions): Lease {
  return new NatsLease(new NatsRecord({ servers, bucket: leaseBucket, key: leaseName }), options)
}

class NatsLease extends RecordLease {
  readonly #record: NatsRecord

  constructor(record: NatsRecord, options: Omit<NatsLeaseOptions, 'servers'>) {
    super({ ...options, store: storeIn(record) })
    this.#record = record
  }

  override async close(): Promise<void> {
    await super.close()
    await this.#record.close()
  }
}

function storeIn(record: NatsRecord): LeaseStore {
  return {
    async read(timeoutMs) {
      const found = await record.read(timeoutMs)
      return found && parse(found.text, found.revision)
    },
    async write(before, content, timeoutMs) {
      const expected = before === undefined ? 0 : Number(before.version)
      const revision = await record.write(JSON.stringify(content), expected, timeoutMs)
      return revision === undefined ? undefined : { ...content, version: `${revision}` }
    },
  }
}

/** An entry that is not a lease is replaced. */
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
