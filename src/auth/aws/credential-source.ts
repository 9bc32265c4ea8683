/** What every place that AWS credentials may come from is. */
import type { Environment } from '../access-token.ts'
import type { Expiring } from '../renewed.ts'
import type { AwsCredentials } from './signature.ts'

export interface ExpiringCredentials extends AwsCredentials, Expiring {}

/** Undefined where the place is not configured; rejects where it is and gives nothing usable. */
export type CredentialSource = (env: Environment) => Promise<ExpiringCredentials | undefined>
