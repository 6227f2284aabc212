# plot.gp CSV SVG: the curves of `make bench-peers` as one picture. (gnuplot -c plot.gp ...)
csv = ARG1
set terminal svg size 1240,900 font "sans,12" background "white"
set output ARG2
set datafile separator ","
set logscale xy
set format "%.0s%c"
set grid
set key below maxrows 4 samplen 2 font ",10" noenhanced

array curve = ["tries", "cycles", "handover", "versions", "renewals", "rows"]
array label = ["clients", "clients", "waiting", "dead versions kept by an old snapshot", "leases", "locks in the table"]
array heading = ["Tries for a held lock, per second", \
    "Acquire + release, per second", \
    "Hand-over, microseconds (thin: 99th percentile)", \
    "Acquire + release by one client, microseconds", \
    "Renewals by one client, per second", \
    "A try for a random held lock, microseconds"]
array contenders = ["lease lease_function_call select_1 advisory_lock shedlock for_update upsert redis redis_threads redis_pipelined etcd etcd_looking", \
    "lease durable_commit shedlock heartbeat redis redis_always etcd", \
    "lease advisory_lock for_update redis etcd", \
    "lease shedlock heartbeat", \
    "lease_renew_all lease_renew heartbeat redis_pipelined", \
    "lease shedlock"]

# A contender has one colour in all curves.
array colours = ["#d62728", "#1f77b4", "#2ca02c", "#9467bd", "#8c564b", "#e377c2", "#7f7f7f", "#ff7f0e", "#17becf", \
    "#bcbd22", "#ff9896", "#c7c7c7"]
order = "lease|lease_renew_all select_1|durable_commit|lease_renew advisory_lock shedlock for_update redis redis_pipelined|redis_always etcd etcd_looking heartbeat|upsert lease_function_call redis_threads"
among(list, name) = strstrt("|".list."|", "|".name."|") > 0
place(name) = sum [k=1:words(order)] (among(word(order, k), name) ? k : 0)
colour(name) = colours[place(name) + (place(name) == 0)] # of a loop with no steps one is looked at

# Points of one contender in one curve follow each other in the file.
x(name, contender) = strcol(1) eq name && strcol(3) eq contender ? $2 : NaN
has(name) = int(system("grep -c '^".name.",' '".csv."' || true"))

set multiplot layout 2,3
do for [p=1:6] {
    if (!has(curve[p])) { set multiplot next; continue }
    set xlabel label[p]
    set title heading[p]
    tails = has(curve[p]."_p99") ? contenders[p] : ""
    plot for [i=1:words(contenders[p])] csv using (x(curve[p], word(contenders[p], i))):5:6:7 with yerrorlines \
            lc rgb colour(word(contenders[p], i)) lw (i == 1 ? 3 : 1.3) pt 7 ps 0.4 title word(contenders[p], i), \
        for [i=1:words(tails)] csv using (x(curve[p]."_p99", word(tails, i))):5 with lines \
            lc rgb colour(word(tails, i)) lw 0.7 dt 2 notitle
}
unset multiplot
