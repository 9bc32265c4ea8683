/** Name of the cluster in subjects of the log: one log holds one cluster. */
export const clusterName = 'local'
