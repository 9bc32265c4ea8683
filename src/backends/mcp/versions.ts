/** Versions of the protocol that the gateway speaks; they are dates and compare as text. */
export const knownVersions = ['2024-10-07', '2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25']
export const latestVersion = '2025-11-25'
/** What is spoken where no header says so (streamable HTTP, protocol version header). */
export const assumedVersion = '2025-03-26'

/** The version to answer `initialize` with: a client that asks for an unknown one gets the latest. */
export const versionFor = (asked: string | undefined): string =>
  asked !== undefined && knownVersions.includes(asked) ? asked : latestVersion

/** Only this version has batches. */
export const hasBatches = (version: string): boolean => version === '2025-03-26'
